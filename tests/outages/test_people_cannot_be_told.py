"""A channel that fails is tried again; a notice that went out is not given twice for what failed after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlmodel import Session, select
from temporalio.exceptions import ApplicationError

from activities.records import RecordActivities
from activities.world import R, World
from daytwo.adapters import Adapters
from daytwo.domain.errors import Unreachable
from daytwo.domain.exchange import AnnounceInput, RepairRef
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.notify.noted import NotedNotifier
from daytwo.outages import Outages
from daytwo.store.engine import Store
from daytwo.store.tables import PartRow
from tests.builders import a_proposal
from tests.rows import REPAIR, a_cluster, a_definition, a_node, a_repair, keep

NOTICE = AnnounceInput(
    ref=RepairRef(repair_id=REPAIR, cluster="east", node="gpu-07"), revision=2, proposal=a_proposal(revision=2)
)


class Telling:
    """The activity that tells people, its file of notices, and a store that may fail to be written."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.path, self.store, self.writes = folder / "notices.jsonl", store, True
        notifier = NotedNotifier(LogNotifier(self.path), Outages(store, "worker"))
        adapters = Adapters(store)
        world = Sometimes(store, adapters, Ledger(store, adapters), notifier)
        object.__setattr__(world, "telling", self)
        self.activities = RecordActivities(world)

    async def announces(self) -> str:
        """What the activity says: nothing, or why it must be tried again."""
        try:
            await self.activities.announce(NOTICE)
        except ApplicationError as error:
            return str(error.type)
        return ""

    def told(self) -> list[str]:
        return [json.loads(line)["subject"] for line in self.path.read_text().splitlines()]

    def part(self) -> PartRow:
        with self.store.read() as session:
            return session.exec(select(PartRow)).one()


class Sometimes(World):
    """A world whose store cannot be written for a while."""

    telling: Telling

    async def write(self, change: Callable[[Session], R]) -> R:
        if not self.telling.writes:
            raise Unreachable("store x does not answer")
        return await super().write(change)


@pytest.fixture
def telling(store: Store, tmp_path: Path) -> Telling:
    definition = a_definition(simulated_socket=str(tmp_path / "lab.sock")).model_dump(mode="json")
    keep(store, a_cluster(definition=definition), a_node(), a_repair(opened_at=datetime.now(UTC)))
    return Telling(store, tmp_path)


async def test_a_channel_that_fails_is_tried_again_and_named(telling: Telling) -> None:
    telling.path.mkdir()
    assert [await telling.announces() for _ in range(3)] == ["Unreachable"] * 3
    assert (telling.part().part, telling.part().away) == ("notifier", True)
    telling.path.rmdir()
    assert (await telling.announces(), len(telling.told()), telling.part().away) == ("", 1, False)


async def test_a_notice_that_went_out_is_not_given_again(telling: Telling) -> None:
    telling.writes = False
    assert [await telling.announces() for _ in range(3)] == ["Unreachable"] * 3
    telling.writes = True
    assert (await telling.announces(), len(telling.told())) == ("", 1)
