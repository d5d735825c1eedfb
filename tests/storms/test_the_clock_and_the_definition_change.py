"""The reconciler while the clock is put back, and while nodes leave the definition of their cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlmodel import update

from daytwo.intake import declare
from daytwo.lab.definition import lab_definition
from daytwo.lab.server import now as wall
from daytwo.store.tables import DecisionRow, IncidentRow, NodeRow
from tests.rows import keep
from tests.storms.rig import SPEED, Rig, a_rig


def lose_who_is_due(rig: Rig) -> None:
    """As a crash between two writes leaves it: only a sweep finds what fires."""
    with rig.store.write() as session:
        session.exec(update(NodeRow).values(judged=NodeRow.due))


def declare_three(rig: Rig) -> None:
    """The definition of the cluster ceases to name node-04."""
    declare(rig.store, lab_definition(str(rig.root / "lab.sock"), nodes=3, speed=SPEED), now=wall())


async def test_a_clock_that_is_put_back_by_an_hour_keeps_nobody_from_the_next_sweep(migrated_file: Path) -> None:
    async with a_rig(migrated_file, nodes=4) as rig:
        await rig.step(90)
        rig.broken(["node-01"])
        lose_who_is_due(rig)
        await rig.step(-3600)
        assert rig.temporal.nodes == ["node-01"]


async def test_a_decision_from_before_the_clock_was_put_back_is_brought(migrated_file: Path) -> None:
    async with a_rig(migrated_file, nodes=4) as rig:
        rig.open_repair("node-01", "r-1")
        made = {"request_id": "d-1", "repair_id": "r-1", "revision": 0, "kind": "hold", "channel": "cli"}
        with rig.store.write() as session:
            session.add(DecisionRow(id="d-1", **made, actor="cli:ann", verified=True, at=rig.now()))
        await rig.step(-3600)
        assert rig.temporal.decided == ["d-1"]


async def test_nothing_is_opened_or_written_on_a_node_that_left_the_definition(migrated_file: Path) -> None:
    async with a_rig(migrated_file, nodes=4) as rig:
        declare_three(rig)
        rig.broken(["node-03", "node-04"])
        await rig.steps(1, 90)
        assert (rig.temporal.nodes, list(rig.marks())) == (["node-03"], ["node-03"])


async def test_an_open_repair_writes_nothing_more_once_its_node_has_left(migrated_file: Path) -> None:
    async with a_rig(migrated_file, nodes=4) as rig:
        rig.open_repair("node-04", "r-4")
        declare_three(rig)
        rig.broken(["node-04"])
        await rig.steps(1, 90)
        assert rig.marks() == {}


async def test_nothing_is_looked_at_or_told_of_a_cluster_that_was_removed(
    migrated_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_rig(migrated_file, nodes=4) as rig:
        ended = {"opened_at": rig.now(), "first_at": rig.now(), "last_at": rig.now(), "told_at": rig.now()}
        keep(rig.store, IncidentRow(id="i-1", cluster="gone", fault_class="board", nodes=40, domains={}, **ended))
        rig.reconciler._again["gone", "gpu-01"] = rig.now()
        await rig.steps(1, 2)
        assert (dict(rig.reconciler._again), [r.message for r in caplog.records if r.levelname == "WARNING"]) == (
            {},
            [],
        )
