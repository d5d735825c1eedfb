"""Somebody writes while another's transaction is open: they decide by what the other one wrote, and nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session, select

from daytwo import node_requests, repairs
from daytwo.controller.leases import Lease, LeaseLost, acquire, renew
from daytwo.domain.errors import Stale
from daytwo.domain.exchange import CloseInput, RecordInput, RepairRef
from daytwo.domain.repair_states import Event
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Channel, DecisionKind, FindingStatus, State
from daytwo.intake import Observation, declare, facts_unknown, observe, observe_facts, observe_in
from daytwo.node_requests import NodeRequest
from daytwo.service import freezes
from daytwo.service.decisions import DecisionRequest, Identity, decide
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, FreezeRow, LeaseRow, NodeRequestRow, NodeRow, RepairRow
from tests.builders import GPU, NOW
from tests.rows import REPAIR, a_definition, a_node, a_policy, a_repair, keep
from tests.store.meeting import while_open

LATER = NOW + timedelta(seconds=60)
ALICE = Identity("cli:alice", Channel.CLI, True)
REF = RepairRef(repair_id=REPAIR, cluster="east", node="gpu-07")
QUESTION = NodeRequest(id="q1", cluster="east", node="gpu-07", kind="probe-gpus", ttl_seconds=30)
"""Its time is up at `LATER`."""


def seen(**fields: Any) -> Observation:
    values = {"status": FindingStatus.FIRING, "first_seen": NOW, "last_seen": NOW, "source": "test", "entity": GPU}
    return Observation(**{"cluster": "east", "node": "gpu-07", "fault": "xid-79"} | values | fields)


def closing(number: int = 1) -> CloseInput:
    """The end of a repair that judged the node's first observation."""
    event = RecordInput(
        ref=REF,
        number=number,
        event=Event.VERIFIED,
        from_state=State.REJOINING,
        to_state=State.SUCCEEDED,
        at=LATER,
        revision=2,
        rung=0,
    )
    return CloseInput(event=event, judged_up_to=1)


def a_holder(store: Store) -> Lease:
    lease = acquire(store, "reconcile", "a", now=NOW, seconds=15)
    assert lease is not None
    return lease


def due(store: Store) -> int:
    with store.read() as session:
        return session.get_one(NodeRow, ("east", "gpu-07")).due


def test_nobody_takes_a_lease_while_its_holder_writes(store: Store) -> None:
    old = a_holder(store)
    with while_open(store, old.guard, lambda: acquire(store, "reconcile", "b", now=LATER, seconds=15)) as taking:
        assert taking.waited
        assert taking.result() is not None


def test_what_a_holder_writes_while_its_lease_is_taken_is_refused(store: Store) -> None:
    old = a_holder(store)

    def take_over(session: Session) -> None:
        session.get_one(LeaseRow, "reconcile", with_for_update=True).epoch += 1

    def write() -> None:
        with store.write() as session:
            old.guard(session)

    with while_open(store, take_over, write) as writing, pytest.raises(LeaseLost):
        writing.result()


def test_a_decision_on_a_repair_that_is_being_closed_is_stale(store: Store) -> None:
    keep(store, a_node(), a_repair())
    request = DecisionRequest(request_id="request-1", repair_id=REPAIR, revision=2, kind=DecisionKind.APPROVE)
    with (
        while_open(store, lambda s: repairs.close(s, closing()), lambda: decide(store, ALICE, request, NOW)) as made,
        pytest.raises(Stale, match="is over"),
    ):
        made.result()


def test_a_fault_that_comes_while_its_repair_is_closed_fires_again(store: Store) -> None:
    keep(store, a_node(), a_repair())
    observe(store, [seen()], now=NOW)
    with while_open(store, lambda s: repairs.close(s, closing()), lambda: observe(store, [seen()], now=LATER)) as late:
        late.result()
    with store.read() as session:
        finding = session.exec(select(FindingRow)).one()
    assert (finding.status, finding.count, finding.judged_up_to) == ("firing", 1, 1)


def test_an_event_that_is_written_twice_is_one_event(store: Store) -> None:
    keep(store, a_node(), a_repair())
    event = closing().event
    with while_open(
        store,
        lambda s: repairs.record(s, event),
        lambda: store.change(lambda s: repairs.record(s, event)),
    ) as again:
        assert again.result() is False


CHANGED = a_definition(policy=a_policy(people=()))


@pytest.mark.parametrize(
    "change",
    [
        lambda store: declare(store, CHANGED, now=LATER),
        lambda store: facts_unknown(store, "east", now=LATER),
        lambda store: observe_facts(store, "east", [NodeFacts(node="gpu-07", states=("DOWN",), at=LATER)], now=LATER),
        lambda store: freezes.thaw(store, ALICE, "*", reason="done", owner="cli:alice", now=LATER),
        lambda store: store.change(lambda session: repairs.touch(session, "east", "gpu-07")),
    ],
    ids=["declare", "facts-unknown", "facts", "thaw", "touch"],
)
def test_no_look_at_a_node_is_forgotten(store: Store, change: Any) -> None:
    declare(store, a_definition(), now=NOW)
    observe_facts(store, "east", [NodeFacts(node="gpu-07", states=("IDLE",), at=NOW)], now=NOW)
    keep(store, FreezeRow(scope="*", reason="", actor="cli:alice", at=NOW))
    before = due(store)
    with while_open(store, lambda s: observe_in(s, [seen()], now=NOW), lambda: change(store)) as changing:
        changing.result()
    assert due(store) >= before + 2


def test_facts_are_compared_with_what_was_found_meanwhile(store: Store) -> None:
    declare(store, a_definition(), now=NOW)
    down = NodeFacts(node="gpu-07", states=("DOWN",), reason="x", at=NOW)
    drained = seen(fault="slurm-down", entity="node", detail={"reason": "x", "reason_by": down.reason_by})
    with while_open(
        store,
        lambda s: observe_in(s, [drained], now=NOW),
        lambda: observe_facts(store, "east", [down], now=NOW),
    ) as again:
        again.result()
    with store.read() as session:
        assert session.exec(select(FindingRow.count)).one() == 1


def test_a_question_that_is_accepted_at_the_last_moment_does_not_lapse(store: Store) -> None:
    keep(store, a_node(boot_id="boot-1"))
    node_requests.ask(store, QUESTION, now=NOW)

    def accept(session: Session) -> None:
        node = session.get_one(NodeRow, ("east", "gpu-07"), with_for_update=True)
        node_requests.offer(session, node, now=NOW)
        answer: Any = {"id": "q1", "state": "accepted", "boot_id": "boot-1"}
        assert node_requests.answer(session, node, [answer], now=NOW + timedelta(seconds=29)) == []

    late = NOW + timedelta(seconds=31)
    with while_open(store, accept, lambda: node_requests.answer_for(store, "q1", now=late)) as asking:
        assert asking.result().state == "accepted"


def test_a_question_that_is_being_withdrawn_is_not_offered(store: Store) -> None:
    keep(store, a_node(boot_id="boot-1"))
    node_requests.ask(store, QUESTION, now=NOW)

    def withdraw(session: Session) -> None:
        session.get_one(NodeRequestRow, "q1", with_for_update=True).state = "withdrawn"

    def offer(session: Session) -> int:
        return len(node_requests.offer(session, session.get_one(NodeRow, ("east", "gpu-07")), now=NOW))

    with while_open(store, withdraw, lambda: store.change(offer)) as offering:
        assert offering.result() == 0


def test_stamps_made_at_once_are_all_kept(store: Store) -> None:
    keep(store, a_repair())
    with while_open(
        store,
        lambda s: repairs.stamp(s, REPAIR, "recommended", NOW),
        lambda: store.change(lambda s: repairs.stamp(s, REPAIR, "approved", NOW)),
    ) as second:
        second.result()
    with store.read() as session:
        assert set(session.get_one(RepairRow, REPAIR).stamps) == {"recommended", "approved"}


def test_a_lease_is_renewed_while_its_holder_writes(postgres_store: Store) -> None:
    lease = a_holder(postgres_store)
    with while_open(postgres_store, lease.guard, lambda: renew(postgres_store, lease, now=NOW, seconds=15)) as renewing:
        assert not renewing.waited


def test_a_node_is_heard_while_another_is_being_written(postgres_store: Store) -> None:
    keep(postgres_store, a_node(), a_node("gpu-08"))
    with while_open(
        postgres_store,
        lambda s: observe_in(s, [seen()], now=NOW),
        lambda: observe(postgres_store, [seen(node="gpu-08")], now=NOW),
    ) as other:
        assert not other.waited
