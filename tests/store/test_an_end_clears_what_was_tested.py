"""The end of a repair clears what its tests have judged, and nothing that they have not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from activities.node_requests import OVERTAKEN, judged_up_to
from daytwo import repairs
from daytwo.domain.exchange import CloseInput, RecordInput, RepairRef, StepInput
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import Action, State
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRequestRow, ObservationRow, RepairRow
from tests.builders import GPU, NOW, a_proposal
from tests.rows import REPAIR, a_cluster, a_finding_row, a_node, a_repair, keep

REF = RepairRef(repair_id=REPAIR, cluster="east", node="gpu-07")


def an_end(event: Event = Event.REJOINED, **fields: Any) -> CloseInput:
    """The repair of a GPU off the bus succeeds; its tests looked as far as observation 20."""
    proposal = a_proposal(faults=("xid-79", "xid-154"))
    recorded = RecordInput(
        ref=REF,
        number=9,
        event=event,
        from_state=State.REJOINING,
        to_state=State.SUCCEEDED,
        at=NOW,
        revision=2,
        rung=4,
        proposal=proposal,
    )
    return CloseInput(event=recorded, **{"judged_up_to": 20} | fields)


def statuses(store: Store, *rows: FindingRow, end: CloseInput) -> dict[str, str]:
    keep(store, a_cluster(), a_node(), a_repair(), *rows)
    store.change(lambda session: repairs.close(session, end))
    with store.read() as session:
        return {row.fault: session.get_one(FindingRow, row.id).status for row in rows}


@pytest.mark.parametrize("fault", ["xid-79", "xid-154", "xid-45", "xid-48"])
def test_what_a_boot_and_tests_clear_is_cleared(store: Store, fault: str) -> None:
    assert statuses(store, a_finding_row(fault, last_observation=20), end=an_end()) == {fault: "cleared"}


@pytest.mark.parametrize("fault", ["slurm-drained", "thermal-throttle", "slurm-down"])
def test_a_fault_that_the_repair_was_not_about_and_no_test_looked_at_stays(store: Store, fault: str) -> None:
    assert statuses(store, a_finding_row(fault, entity="node", last_observation=20), end=an_end()) == {fault: "firing"}


def test_a_fault_that_came_after_the_tests_stays(store: Store) -> None:
    assert statuses(store, a_finding_row(last_observation=21), end=an_end()) == {"xid-79": "firing"}


def test_a_note_that_ends_a_repair_clears_nothing_that_tests_have_found(store: Store) -> None:
    assert statuses(store, a_finding_row(entity=GPU, last_observation=20), end=an_end(Event.NOTED)) == {
        "xid-79": "firing"
    }


@pytest.mark.parametrize(("fault", "quiet"), [("xid-79", True), ("asked", False)])
def test_a_dismissal_keeps_a_fault_quiet_and_not_the_wish_of_a_person(store: Store, fault: str, quiet: bool) -> None:
    proposal = a_proposal(fault=fault, faults=(fault,))
    keep(store, a_cluster(), a_node(), a_repair(proposal=proposal.model_dump(mode="json")))
    end = an_end(Event.DISMISSED).event.model_copy(update={"to_state": State.DISMISSED, "proposal": proposal})
    store.change(lambda session: repairs.close(session, CloseInput(event=end)))
    with store.read() as session:
        assert (session.get_one(RepairRow, REPAIR).snooze_until is not None) == quiet


def answered(kind: str, offered_at: datetime, **fields: Any) -> NodeRequestRow:
    """A question of the tests, and when the agent was offered it."""
    ident = f"{REPAIR}/verify-8/{kind}/0"
    values = {"id": ident, "cluster": "east", "node": "gpu-07", "repair_id": REPAIR, "kind": kind, "state": "done"}
    return NodeRequestRow(**values | {"created_at": NOW, "deadline": NOW, "offered_at": offered_at} | fields)


def seen(number: int, at: datetime) -> ObservationRow:
    times = {"first_seen_at": at, "seen_at": at, "received_at": at}
    return ObservationRow(
        id=number, cluster="east", node="gpu-07", fault="xid-79", entity=GPU, status="firing", **times
    )


def test_what_came_while_the_agent_answered_is_not_judged(store: Store) -> None:
    later = NOW + timedelta(seconds=5)
    keep(store, a_node(), answered("probe-gpus", NOW), answered("probe-kernel", later))
    keep(store, seen(20, NOW - timedelta(seconds=1)), seen(21, NOW + timedelta(seconds=1)), seen(22, later))
    step = StepInput(ref=REF, stage="verify-8", action=Action.REBOOT, since=NOW)
    with store.read() as session:
        assert judged_up_to(session, step) == 20


def test_rounds_that_did_not_suffice_do_not_count(store: Store) -> None:
    first = answered("probe-gpus", NOW, error=OVERTAKEN)
    again = answered("probe-gpus", NOW + timedelta(minutes=1), id=f"{REPAIR}/verify-8/probe-gpus/1")
    keep(store, a_node(), first, again, seen(20, NOW + timedelta(seconds=30)))
    step = StepInput(ref=REF, stage="verify-8", action=Action.REBOOT, since=NOW)
    with store.read() as session:
        assert judged_up_to(session, step) == 20


@pytest.mark.parametrize(("asked", "hours"), [(None, 8), (3600, 1), (0, None)])
def test_a_dismissal_carries_a_snooze_also_where_nobody_named_one(
    store: Store, asked: int | None, hours: int | None
) -> None:
    end = an_end(Event.DISMISSED, snooze_seconds=asked)
    dismissed = end.event.model_copy(update={"from_state": State.PROPOSED, "to_state": State.DISMISSED})
    keep(store, a_cluster(), a_node(), a_repair())
    store.change(lambda session: repairs.close(session, end.model_copy(update={"event": dismissed})))
    with store.read() as session:
        until = session.get_one(RepairRow, REPAIR).snooze_until
    assert until == (None if hours is None else NOW + timedelta(hours=hours))
