"""The activity `act` in a world of one cluster, whose only driver is before the misbehaving BMC."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from activities.hardware import HardwareActivities
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Cluster
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.vocabulary import Action, ClusterKind
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.store.tables import NodeRow
from tests.redfish.conftest import NODE, REPAIR, Desk

NOW = datetime.now(UTC)


class OneCluster(dict[str, Any]):
    """The adapters of one cluster with one driver."""

    def __init__(self, desk: Desk) -> None:
        driver = desk.driver()
        super().__init__({"hardware:east:0": driver})
        definition = ClusterDefinition(
            name="east", kind=ClusterKind.SLURM, groups=(NodeGroup(nodes=(NODE,)),), bmcs=(desk.access,)
        )
        self._cluster = Cluster(definition, 1, desk.marks, (driver,))

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
    ledger = Ledger(desk.store, adapters, clock=desk.clock)
    world = World(desk.store, adapters, ledger, notifier, desk.clock)
    return HardwareActivities(world)


STEP = StepInput(
    ref=RepairRef(repair_id=REPAIR, cluster="east", node=NODE), stage="0", action=Action.POWER_CYCLE, since=NOW
)
