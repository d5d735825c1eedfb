"""A node whose agent does not answer its tests has failed them, unless no agent is heard: that is the gateway."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.node_requests import VerifyActivities
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Adapters
from daytwo.domain.exchange import RepairRef, StepInput, Verified
from daytwo.domain.vocabulary import Action
from daytwo.intake import declare
from daytwo.intents import Ledger
from daytwo.lab.definition import CLUSTER, lab_definition
from daytwo.lab.server import Lab
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from tests.builders import a_proposal

NODE = "node-01"
NOW = datetime.now(UTC)
REF = RepairRef(repair_id="r-20261130-030000-abcde", cluster=CLUSTER, node=NODE)
STEP = StepInput(ref=REF, stage="verify-1", action=Action.VERIFY, proposal=a_proposal(), since=NOW)


class Verifying:
    """Asks again and again, as time is moved."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.now = store, NOW
        adapters = Adapters(store)
        ledger = Ledger(store, adapters)
        world = World(store, adapters, ledger, LogNotifier(folder / "notices.jsonl"), lambda: self.now)
        self.activities = VerifyActivities(world)

    async def asks(self, seconds: float) -> Verified | str:
        """Later, the outcome of the tests or what they wait for."""
        self.now += timedelta(seconds=seconds)
        try:
            return await self.activities.verify(STEP)
        except ApplicationError as error:
            return str(error)

    def hears(self, node: str) -> None:
        with self.store.write() as session:
            session.get_one(NodeRow, (CLUSTER, node)).last_heard_at = self.now


@pytest.fixture
async def verifying(store: Store, lab: Lab, socket: str, tmp_path: Path) -> Verifying:
    """A node that was acted on some time ago; its agent was heard before, and is asked now."""
    declare(store, lab_definition(socket, nodes=16, speed=1), now=NOW)
    with store.write() as session:
        row = session.get_one(NodeRow, (CLUSTER, NODE))
        row.last_heard_at = NOW
        repairs.open_row(session, REF.repair_id, row, why="test", opened_by="policy", policy_revision=1, now=NOW)
    found = Verifying(store, tmp_path)
    assert "waiting for its agent" in str(await found.asks(700))
    return found


async def test_while_no_agent_is_heard_its_silence_proves_nothing(verifying: Verifying) -> None:
    assert "is the gateway up?" in str(await verifying.asks(200))
    assert "waiting for its agent" in str(await verifying.asks(1))


async def test_while_others_are_heard_its_silence_is_its_own(verifying: Verifying) -> None:
    verifying.hears("node-02")
    judged = await verifying.asks(200)
    assert isinstance(judged, Verified)
    assert not judged.passed


async def test_a_gateway_that_never_returns_is_not_waited_for_without_end(verifying: Verifying) -> None:
    for _ in range(10):
        judged = await verifying.asks(200)
    assert isinstance(judged, Verified)
    assert not judged.passed
