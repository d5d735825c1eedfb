"""Repairs whose runs are short, so that they continue as new after a few events and not after 2,000."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from daytwo import repairs
from daytwo.domain.exchange import Run
from daytwo.domain.ids import new_id
from daytwo.lab.definition import CLUSTER
from daytwo.store.tables import NodeRow, RepairRow
from daytwo.temporal import Repairs
from tests.workflows.plane import Plane


async def a_repair_of_short_runs(plane: Plane, fault: str, *, events_per_run: int, **options: Any) -> RepairRow:
    """Break a node whose repair is opened here and not by the reconciler; returns it as first proposed."""
    node = plane.take()
    run = Run(repair_id=new_id("r", datetime.now(UTC)), cluster=CLUSTER, node=node, events_per_run=events_per_run)
    _open(plane, run)
    await plane.broken(fault, node=node, **options)
    await plane.until(lambda: fault in plane.findings(node), f"{fault} is known")
    await Repairs(plane.client, plane.settings.task_queue).start(run, f"{node}: {fault}")
    return await plane.proposed(node)


def _open(plane: Plane, run: Run) -> None:
    """The row, claimed already: one that is `opening` would be started by the reconciler."""
    now = datetime.now(UTC)
    with plane.store.write() as session:
        node = session.get_one(NodeRow, (run.cluster, run.node))
        repairs.open_row(session, run.repair_id, node, why="short runs", opened_by="test", policy_revision=1, now=now)
        repairs.claim(session, run.ref, now)
