"""Who may decide, on what, and when it is too late."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime

import pytest
from sqlmodel import select

from daytwo.domain.errors import Stale
from daytwo.domain.vocabulary import Action, DecisionKind, State
from daytwo.store.tables import DecisionRow, FreezeRow
from daytwo.temporal import Repairs
from tests.workflows.plane import LEAD, NOBODY, OPERATOR, Plane

D = DecisionKind
S = State


async def a_row(plane: Plane, node: str, *, repair_id: str, revision: int) -> str:
    """A decision row as a late delivery brings it: past the checks that the service makes."""
    ident = f"d-test-{uuid.uuid4().hex[:8]}"
    row = DecisionRow(
        id=ident,
        request_id=ident,
        repair_id=repair_id,
        revision=revision,
        kind=D.APPROVE,
        actor=LEAD.actor,
        channel="cli",
        verified=True,
        at=datetime.now(UTC),
    )
    with plane.store.write() as session:
        session.add(row)
    await Repairs(plane.client, plane.settings.task_queue).decide("sim", node, ident)
    return ident


async def test_of_two_approvers_at_once_one_is_accepted_and_the_node_boots_once(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    ids = await asyncio.gather(plane.decide(node, D.APPROVE, LEAD), plane.decide(node, D.APPROVE, OPERATOR))
    ends = [await plane.ended(ident) for ident in ids]
    assert sorted(row.status for row in ends) == ["accepted", "void"]
    await plane.in_state(node, S.SUCCEEDED, seconds=60)
    assert plane.acts(node, "reboot") == 1


async def test_an_unknown_person_is_refused_with_the_reason_and_the_proposal_stands(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    row = await plane.ended(await plane.decide(node, D.APPROVE, NOBODY))
    assert row.status == "refused"
    assert "cli:eve is nobody" in row.status_reason
    await plane.in_state(node, S.PROPOSED)
    assert plane.acts(node, "reboot") == 0


async def test_an_approval_of_an_old_revision_is_void(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    repair = await plane.proposed(node)
    row = await plane.ended(await a_row(plane, node, repair_id=repair.id, revision=0))
    assert (row.status, "revision 0" in row.status_reason) == ("void", True)
    assert plane.repair(node).state == S.PROPOSED


async def test_an_approval_of_another_repair_is_void(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    row = await plane.ended(await a_row(plane, node, repair_id="r-20200101-000000-aaaaa", revision=1))
    assert (row.status, "r-20200101" in row.status_reason) == ("void", True)


async def test_a_dismissal_lifts_our_marks_and_a_later_approval_comes_too_late(plane: Plane) -> None:
    node = await plane.broken("xid-79")
    await plane.proposed(node)
    await plane.until(lambda: "DRAIN" in plane.scheduler_states(node), "contained")
    await plane.decide(node, D.DISMISS, snooze_seconds=3600)
    await plane.in_state(node, S.DISMISSED)
    assert "DRAIN" not in plane.scheduler_states(node)
    with pytest.raises(Stale):
        await plane.decide(node, D.APPROVE)


async def test_a_dismissed_fault_is_not_proposed_again_while_it_is_snoozed(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    first = await plane.proposed(node)
    await plane.decide(node, D.DISMISS, snooze_seconds=3600)
    await plane.in_state(node, S.DISMISSED)
    await asyncio.to_thread(plane.lab.break_node, node, "xid-119")
    await asyncio.sleep(2)
    assert plane.repair(node).id == first.id


async def test_a_freeze_between_approval_and_act_stops_it_until_thawed(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    with plane.store.write() as session:
        session.add(FreezeRow(scope=f"sim/{node}", reason="hands inside", actor="cli:ann", at=datetime.now(UTC)))
    await plane.decide(node, D.APPROVE)
    await plane.in_state(node, S.APPROVED)
    await asyncio.sleep(1)
    assert (plane.repair(node).state, plane.acts(node, "reboot")) == (S.APPROVED, 0)
    with plane.store.write() as session:
        freeze = session.exec(select(FreezeRow).where(FreezeRow.scope == f"sim/{node}")).one()
        freeze.thawed_at = datetime.now(UTC)
    await plane.in_state(node, S.SUCCEEDED, seconds=60)


async def test_an_approval_may_name_another_action(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.approved(node, action=Action.POWER_CYCLE)
    await plane.in_state(node, S.SUCCEEDED, seconds=60)
    assert (plane.acts(node, "power-cycle"), plane.acts(node, "reboot")) == (1, 0)


async def test_an_action_that_no_driver_can_do_is_refused_with_what_it_can(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    row = await plane.ended(await plane.decide(node, D.APPROVE, action=Action.REPROVISION))
    assert row.status == "refused"
    assert "it can inspect, power-cycle, reboot, remove" in row.status_reason


async def test_an_operator_may_not_remove_a_node(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    row = await plane.ended(await plane.decide(node, D.APPROVE, OPERATOR, action=Action.REMOVE))
    assert (row.status, "lead" in row.status_reason) == ("refused", True)


async def test_a_removed_node_stays_drained(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.approved(node, action=Action.REMOVE)
    await plane.in_state(node, S.REMOVED, seconds=60)
    assert "DRAIN" in plane.scheduler_states(node)
    assert plane.acts(node, "reboot") == 0


async def test_a_held_repair_moves_only_when_it_is_released(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    await plane.decide(node, D.HOLD)
    await plane.in_state(node, S.HELD)
    row = await plane.ended(await plane.decide(node, D.APPROVE))
    assert row.status == "void"
    await plane.decide(node, D.RELEASE)
    await plane.in_state(node, S.PROPOSED)
    await plane.approved(node)
    await plane.in_state(node, S.SUCCEEDED, seconds=60)
