"""When a storm has been held back for long enough and still fires, its nodes are asked about a few at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlmodel import col, select

from activities.in_incidents import incident_around
from daytwo.domain.exchange import RepairRef
from daytwo.domain.policy import Budget
from daytwo.domain.vocabulary import Action
from daytwo.lab.definition import CLUSTER
from daytwo.store.tables import RepairRow
from tests.storms.rig import FAULT, Rig, a_rig

NODES = 40
AT_ONCE = 4
CONTAINED = 2
HOLD = 3600.0
BUDGET = Budget(acting_share=AT_ONCE / NODES)


@pytest.fixture
async def rig(migrated_file: Path) -> AsyncIterator[Rig]:
    """A fleet of which every node has been broken for as long as it is held back."""
    async with a_rig(migrated_file, nodes=NODES, policy={"budget": BUDGET}) as rig:
        rig.broken(rig.names)
        await rig.steps(0, 3, 3)
        await rig.steps(HOLD, 3, 3)
        yield rig


def end_one(rig: Rig) -> None:
    """Somebody mends a node, and its repair ends."""
    with rig.store.write() as session:
        row = session.exec(select(RepairRow).where(col(RepairRow.open_key).is_not(None)).limit(1)).one()
        row.open_key, row.closed_at, row.state = None, datetime.now(UTC) + rig.ahead, "succeeded"
        node = row.node
    rig.well([node])


async def test_as_many_repairs_are_opened_as_nodes_may_be_acted_on(rig: Rig) -> None:
    assert len(rig.temporal.nodes) == AT_ONCE
    await rig.steps(60, 60)
    assert len(rig.temporal.nodes) == AT_ONCE


async def test_people_are_told_once_that_they_are_asked_again(rig: Rig) -> None:
    await rig.steps(60, 60)
    first, again = rig.notices()
    assert first["subject"].startswith("INCIDENT sim")
    assert again["subject"].startswith("INCIDENT HELD FOR LONG ENOUGH sim")
    assert f"at most {AT_ONCE} of a pool at a time" in again["text"]


async def test_the_next_is_opened_when_one_has_ended(rig: Rig) -> None:
    end_one(rig)
    await rig.steps(40, 3)
    assert len(rig.temporal.nodes) == AT_ONCE + 1


async def test_nodes_that_wait_for_their_turn_stay_contained(rig: Rig) -> None:
    await rig.steps(400, 6, 6, 6, 6)
    assert len(rig.marks()) >= CONTAINED
    assert [row.open_key for row in rig.incidents()] == ["sim/board"]


async def test_a_node_that_falls_by_itself_waits_for_nobody(rig: Rig) -> None:
    other = next(name for name in rig.names if name not in rig.temporal.nodes)
    rig.well([other])
    rig.broken([other], "xid-119")
    await rig.steps(3, 3)
    assert other in rig.temporal.nodes


async def test_a_new_wave_is_told_again(rig: Rig) -> None:
    rig.well(rig.names)
    await rig.steps(1, 1)
    rig.broken(rig.names)
    await rig.steps(0, 3, 3, 3)
    assert [notice["subject"].split(" sim")[0] for notice in rig.notices()][2:] == ["INCIDENT"]


async def test_no_approval_has_to_name_an_incident_that_holds_nothing_back_any_more(rig: Rig) -> None:
    node, repair = next(iter(rig.repair_ids().items()))
    ref = RepairRef(repair_id=repair, cluster=CLUSTER, node=node)
    with rig.store.write() as session:
        session.get_one(RepairRow, repair).fault = FAULT
        found = [
            incident_around(session, ref, Action.REBOOT, hold_seconds=HOLD * times, now=rig.now()) for times in (1, 2)
        ]
    assert [each is None for each in found] == [True, False]
