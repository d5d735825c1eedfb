"""A workflow that was ended from outside is missed twice; then its repair goes on as one that needs help."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daytwo.domain.vocabulary import State
from daytwo.store.tables import DecisionRow, RepairRow
from tests.controller.test_marks import NODE, change
from tests.storms.rig import Rig, a_rig


@pytest.fixture
async def rig(migrated_file: Path) -> AsyncIterator[Rig]:
    async with a_rig(migrated_file, nodes=12) as small:
        yield small


async def terminated(rig: Rig) -> str:
    """A proposed repair whose workflow has just been ended, right after a sweep; returns its id."""
    rig.broken([NODE])
    await rig.steps(0.5, 2, 61)
    change(rig, repair := rig.repair_ids()[NODE], state=State.PROPOSED)
    rig.temporal.gone = {NODE}
    return repair


def approve(rig: Rig, repair: str) -> None:
    words = {"kind": "approve", "actor": "cli:lea", "channel": "cli", "verified": True, "revision": 0}
    ids = {"id": "d-1", "request_id": "request-1", "repair_id": repair}
    with rig.store.write() as session:
        session.add(DecisionRow(**ids | words, at=rig.now()))


def state(rig: Rig, repair: str) -> str:
    with rig.store.read() as session:
        return session.get_one(RepairRow, repair).state


async def test_a_decision_that_nobody_takes_finds_a_workflow_gone_within_seconds(rig: Rig) -> None:
    approve(rig, repair := await terminated(rig))
    await rig.steps(3, 3)
    assert (state(rig, repair), rig.temporal.runs[-1].restarted) == ("needs-help", True)


async def test_a_workflow_that_one_look_has_missed_is_not_lost_yet(rig: Rig) -> None:
    approve(rig, repair := await terminated(rig))
    await rig.step(3)
    rig.temporal.gone = set()
    await rig.steps(3, 6)
    assert state(rig, repair) == "proposed"


async def test_a_workflow_that_a_sweep_has_missed_is_looked_for_again_before_the_next(rig: Rig) -> None:
    repair = await terminated(rig)
    await rig.step(61)
    before = state(rig, repair)
    await rig.step(6)
    assert (before, state(rig, repair)) == ("proposed", "needs-help")
