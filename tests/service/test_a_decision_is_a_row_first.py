"""`decide`: the one way a decision is made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlmodel import select

from daytwo.domain.errors import BadInput, NotFound, Stale
from daytwo.domain.vocabulary import Action, Channel, Decision, DecisionKind, DecisionStatus
from daytwo.service.decisions import DecisionRequest, Identity, decide, deliver_soon, wait_for
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, DecisionRow, NodeRow
from tests.builders import NOW
from tests.rows import REPAIR, a_repair, keep
from tests.serving import Away, Repairer

ALICE = Identity("cli:alice", Channel.CLI, verified=True)
BOB = Identity("cli:bob", Channel.CLI, verified=True)


def a_request(**fields: Any) -> DecisionRequest:
    values = {"request_id": "cli-00000001", "repair_id": REPAIR, "revision": 2, "kind": DecisionKind.APPROVE}
    return DecisionRequest(**values | fields)


def approve(store: Store, asker: Identity = ALICE, **fields: Any) -> Decision:
    return decide(store, asker, a_request(**fields), NOW)


def rows(store: Store) -> list[DecisionRow]:
    with store.read() as session:
        return list(session.exec(select(DecisionRow)).all())


def test_an_approval_is_pending_until_the_repair_takes_it(fleet: Store) -> None:
    approve(fleet)
    assert [(row.actor, row.verified, row.status) for row in rows(fleet)] == [("cli:alice", True, "pending")]


def test_a_decision_marks_its_node_due(fleet: Store) -> None:
    approve(fleet)
    with fleet.read() as session:
        assert session.get_one(NodeRow, ("east", "gpu-07")).due == 1


def test_a_decision_is_audited_in_the_same_transaction(fleet: Store) -> None:
    made = approve(fleet, reason="job is dead")
    with fleet.read() as session:
        row = session.get_one(AuditRow, 1)
    assert (row.actor, row.act, row.subject) == ("cli:alice", "approve", REPAIR)
    assert (row.data["decision"], row.data["reason"]) == (made.id, "job is dead")


def test_the_same_request_twice_is_one_decision(fleet: Store) -> None:
    assert approve(fleet).id == approve(fleet).id
    assert len(rows(fleet)) == 1


@pytest.mark.parametrize(
    ("asker", "fields"),
    [(ALICE, {"kind": DecisionKind.HOLD}), (ALICE, {"action": Action.POWER_CYCLE}), (BOB, {})],
)
def test_a_request_id_cannot_be_used_for_something_else(fleet: Store, asker: Identity, fields: dict[str, Any]) -> None:
    approve(fleet)
    with pytest.raises(Stale, match="already used"):
        approve(fleet, asker, **fields)


def test_a_repeated_request_still_finds_its_row_when_the_repair_is_over(fleet: Store) -> None:
    made = approve(fleet)
    with fleet.write() as session:
        session.merge(a_repair(state="succeeded", open_key=None))
    assert approve(fleet).id == made.id


def test_two_approvers_at_once_are_two_decisions(fleet: Store) -> None:
    asked = [(ALICE, "cli-alice-01"), (BOB, "cli-bob-0001")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: approve(fleet, each[0], request_id=each[1]), asked))
    assert {row.actor for row in rows(fleet)} == {"cli:alice", "cli:bob"}


def test_an_unknown_repair_is_not_found(fleet: Store) -> None:
    with pytest.raises(NotFound, match="r-nowhere"):
        approve(fleet, repair_id="r-nowhere")


@pytest.mark.parametrize(("revision", "error"), [(1, Stale), (3, NotFound)])
def test_another_revision_is_refused_and_says_what_stands_now(
    fleet: Store, revision: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match="at revision 2, proposed, asks for reboot"):
        approve(fleet, revision=revision)
    assert rows(fleet) == []


def test_a_closed_repair_is_stale(fleet: Store) -> None:
    keep(fleet, a_repair("r-20261130-100000-aaaaa", open_key=None, state="dismissed", outcome="by bob"))
    with pytest.raises(Stale, match=r"is over: dismissed \(by bob\)"):
        approve(fleet, repair_id="r-20261130-100000-aaaaa")


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": DecisionKind.DISMISS},
        {"kind": DecisionKind.DISMISS, "reason": "  "},
        {"kind": DecisionKind.REMOVE},
        {"kind": DecisionKind.HAND_OVER},
        {"kind": DecisionKind.RETRY, "action": Action.POWER_CYCLE},
    ],
)
def test_a_reason_is_required_where_it_matters(fleet: Store, fields: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"^reason: found nothing"):
        approve(fleet, **fields)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kind": DecisionKind.HOLD, "action": Action.REBOOT}, "action"),
        ({"snooze_seconds": 60}, "snooze_seconds"),
    ],
)
def test_what_does_not_belong_to_the_decision_is_named(fleet: Store, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput, match=f"^{field}: found"):
        approve(fleet, **fields)


async def test_a_delivery_that_fails_leaves_the_decision_to_the_reconciler(fleet: Store) -> None:
    made = approve(fleet)
    await deliver_soon(Away(), made.id)
    assert (await wait_for(fleet, made.id, 0)).status is DecisionStatus.PENDING


async def test_waiting_ends_when_the_decision_has_ended(fleet: Store) -> None:
    made = approve(fleet)
    await Repairer(fleet, "refused", "frozen").deliver(made.id)
    ended = await wait_for(fleet, made.id, 30)
    assert (ended.status, ended.status_reason) == (DecisionStatus.REFUSED, "frozen")
