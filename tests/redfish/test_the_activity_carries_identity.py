"""The activity `act` before a BMC: what the agent said of itself goes into the act, and the machine is reset once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.hardware import HardwareActivities
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Cluster
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.vocabulary import Action, ClusterKind
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.store.tables import IntentRow, NodeRow
from tests.redfish.bmc import PASSWORD
from tests.redfish.conftest import IDENTITY, NODE, REPAIR, Desk

NOW = datetime.now(UTC)


class OneCluster(dict[str, Any]):
    """The adapters of one cluster with one driver."""

    def __init__(self, desk: Desk) -> None:
        driver = desk.driver()
        super().__init__({"hardware:east:0": driver})
        definition = ClusterDefinition(
            name="east", kind=ClusterKind.SLURM, groups=(NodeGroup(nodes=(NODE,)),), bmcs=(desk.access,)
        )
        self._cluster = Cluster(definition, 1, desk.marks, (driver,))  # type: ignore[arg-type]  # asked for marks only

    def cluster(self, name: str) -> Cluster:
        return self._cluster


def activity(desk: Desk, tmp_path: Path, **node: Any) -> HardwareActivities:
    """The activity in a world where the node was heard of and is under repair."""
    with desk.store.write() as session:
        row = NodeRow(cluster="east", name=NODE, state_since=NOW, boot_id="boot-1", **node)
        session.add(row)
        repairs.open_row(session, REPAIR, row, why="test", opened_by="policy", policy_revision=1, now=NOW)
    adapters = OneCluster(desk)
    notifier = LogNotifier(tmp_path / "notices.jsonl")
    world = World(desk.store, adapters, Ledger(desk.store, adapters), notifier)  # type: ignore[arg-type]  # one cluster
    return HardwareActivities(world)


STEP = StepInput(
    ref=RepairRef(repair_id=REPAIR, cluster="east", node=NODE), stage="0", action=Action.POWER_CYCLE, since=NOW
)


async def test_what_the_agent_said_is_in_the_act_and_the_machine_is_reset_once(desk: Desk, tmp_path: Path) -> None:
    doing = activity(desk, tmp_path, identity=IDENTITY, identity_at=NOW)
    assert "power On" in (await doing.act(STEP)).proof
    assert "power On" in (await doing.act(STEP)).proof
    with desk.store.read() as session:
        act = session.get_one(IntentRow, f"{REPAIR}/0/power-cycle").act
    assert (act["baseline"]["identity"], len(desk.bmc.resets), PASSWORD in str(act)) == (IDENTITY, 1, False)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({}, "never said which machine it is"),
        ({"identity": IDENTITY, "identity_at": NOW - timedelta(days=40)}, "40 days ago"),
        ({"identity": {"system_uuid": "1" * 32}, "identity_at": NOW}, "is not there"),
    ],
)
async def test_a_machine_that_is_not_known_is_for_a_person(
    desk: Desk, tmp_path: Path, node: dict[str, Any], why: str
) -> None:
    with pytest.raises(ApplicationError, match=why) as caught:
        await activity(desk, tmp_path, **node).act(STEP)
    assert (caught.value.non_retryable, caught.value.type, desk.bmc.resets) == (True, "Refused", [])
