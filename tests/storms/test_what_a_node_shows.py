"""What is said of a node that is healthy but for a record, and of one whose removal has just ended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from daytwo.lab.definition import CLUSTER
from daytwo.store.tables import NodeRow, RepairRow
from tests.rows import keep
from tests.storms.rig import Rig

NODE = "node-07"


def shown(rig: Rig) -> tuple[str, str]:
    with rig.store.read() as session:
        row = session.get_one(NodeRow, (CLUSTER, NODE))
        return row.state, row.state_why


async def test_a_fault_that_is_only_recorded_is_named(rig: Rig) -> None:
    rig.broken([NODE], "xid-94")
    await rig.step()
    assert shown(rig) == ("healthy", "heard of, xid-94 is only recorded, open for work")


@pytest.mark.parametrize(("seconds", "state"), [(1, "paused"), (40, "healthy")])
async def test_a_node_that_was_just_removed_is_not_healthy_before_its_marks_are_read(
    rig: Rig, seconds: float, state: str
) -> None:
    ended = rig.now() - timedelta(seconds=seconds)
    times = {"state_since": ended, "opened_at": ended, "closed_at": ended}
    keep(rig.store, RepairRow(id="r-1", cluster=CLUSTER, node=NODE, state="removed", revision=1, **times))
    with rig.store.write() as session:
        row = session.get_one(NodeRow, (CLUSTER, NODE))
        row.facts = {**(row.facts or {}), "at": (ended - timedelta(seconds=1)).isoformat()}
        row.due += 1
    await rig.reconciler.step()
    assert shown(rig)[0] == state
