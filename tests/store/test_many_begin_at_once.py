"""Many do the same at the same time: it is done as often as it may be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from daytwo import budgets, node_requests, repairs
from daytwo.controller.leases import acquire
from daytwo.domain.errors import BadInput, Stale
from daytwo.domain.exchange import RepairRef
from daytwo.domain.policy import Budget
from daytwo.domain.vocabulary import Channel, DecisionKind
from daytwo.intake import declare
from daytwo.node_requests import NodeRequest
from daytwo.service.decisions import DecisionRequest, Identity, decide
from daytwo.store import audit
from daytwo.store.engine import Store
from tests.builders import NOW
from tests.rows import REPAIR, a_definition, a_node, a_repair, keep
from tests.store.meeting import at_once

ALICE = Identity("cli:alice", Channel.CLI, True)


def approve(store: Store, **fields: Any) -> str:
    values = {"request_id": "request-1", "repair_id": REPAIR, "revision": 2, "kind": DecisionKind.APPROVE}
    return decide(store, ALICE, DecisionRequest.model_validate(values | fields), NOW).id


def test_ten_writers_of_the_first_audit_rows_make_one_whole_chain(store: Store) -> None:
    def write(number: int) -> None:
        for _ in range(3):
            with store.write() as session:
                audit.append(session, f"cli:{number}", "approve", "r-1", now=NOW)

    at_once(10, write)
    with store.read() as session:
        found = audit.verify(session)
    assert (found.problem, found.count) == ("", 30)


def test_of_twenty_takers_of_one_right_one_gets_it(store: Store) -> None:
    names = [f"gpu-{number:02}" for number in range(20)]
    keep(store, *(a_node(name) for name in names))
    keep(store, *(a_repair(f"r-{name}", node=name, open_key=f"east/{name}") for name in names))

    def take(number: int) -> str:
        ref = RepairRef(repair_id=f"r-{names[number]}", cluster="east", node=names[number])
        return store.change(lambda session: budgets.take_right(session, ref, Budget(acting_nodes=1), NOW))

    refusals = at_once(20, take)
    assert refusals.count("") == 1


@pytest.mark.parametrize("held_before", [False, True])
def test_of_eight_who_want_a_lease_one_gets_it(store: Store, held_before: bool) -> None:
    if held_before:
        acquire(store, "reconcile", "dead", now=NOW - timedelta(seconds=20), seconds=15)
    leases = at_once(8, lambda number: acquire(store, "reconcile", f"c-{number}", now=NOW, seconds=15))
    assert [lease.epoch for lease in leases if lease] == [1 + held_before]


def test_a_node_gets_one_open_repair(store: Store) -> None:
    node = a_node()
    keep(store, node)

    def is_opened(number: int) -> bool:
        try:
            with store.write() as session:
                repairs.open_row(session, f"r-{number}", node, why="", opened_by="policy", policy_revision=1, now=NOW)
        except IntegrityError:
            return False
        return True

    assert at_once(8, is_opened).count(True) == 1


def test_a_decision_sent_eight_times_is_one_row(store: Store) -> None:
    keep(store, a_node(), a_repair())
    assert len(set(at_once(8, lambda _: approve(store)))) == 1


def test_one_request_id_for_two_repairs_is_good_for_one(store: Store) -> None:
    keep(store, a_node(), a_repair(), a_repair("r-2", open_key="east/gpu-08", node="gpu-08"))

    def is_made(number: int) -> bool:
        try:
            return bool(approve(store, repair_id=(REPAIR, "r-2")[number]))
        except Stale:
            return False

    assert sorted(at_once(2, is_made)) == [False, True]


def test_a_question_to_a_node_asked_eight_times_is_one_row(store: Store) -> None:
    question = NodeRequest(id="q1", cluster="east", node="gpu-07", kind="probe-gpus", ttl_seconds=30)
    asked = at_once(8, lambda _: node_requests.ask(store, question, now=NOW).state)
    assert asked == ["open"] * 8


def test_two_clusters_with_a_node_of_one_name_are_not_both_declared(store: Store) -> None:
    def is_declared(number: int) -> bool:
        try:
            declare(store, a_definition(("east", "west")[number]), now=NOW)
        except BadInput:
            return False
        return True

    assert sorted(at_once(2, is_declared)) == [False, True]
