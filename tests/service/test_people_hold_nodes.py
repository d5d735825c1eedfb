"""A held node: its open repair is held, nothing is opened, and a release takes back only that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import col, select

from daytwo.domain.errors import BadInput, Refused, Stale
from daytwo.domain.vocabulary import Action, Channel
from daytwo.service.asking import RepairRequest, ask
from daytwo.service.decisions import Identity
from daytwo.service.holding import HoldRequest, hold, release
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, DecisionRow, NodeRow, RepairRow
from tests.builders import NOW
from tests.rows import REPAIR, a_node, keep

ALICE = Identity(actor="cli:alice", channel=Channel.CLI, verified=True)
EVE = Identity(actor="cli:eve", channel=Channel.CLI, verified=True)
BENCH = HoldRequest(node="gpu-07", reason="bench work")


def decisions(store: Store) -> list[tuple[str, str]]:
    with store.read() as session:
        rows = session.exec(select(DecisionRow).order_by(col(DecisionRow.at), col(DecisionRow.kind))).all()
    return [(row.kind, row.status) for row in rows]


def carried_out(store: Store, decision: str | None, state: str) -> None:
    """The repair takes the decision."""
    with store.write() as session:
        row = session.get_one(DecisionRow, decision)
        row.status, row.ended_at = "accepted", NOW
        session.get_one(RepairRow, REPAIR).state = state


def test_a_hold_is_on_the_node_and_decided_on_its_repair(fleet: Store) -> None:
    held = hold(fleet, ALICE, BENCH, NOW)
    with fleet.read() as session:
        node = session.get_one(NodeRow, ("east", "gpu-07"))
    assert (node.held_by, node.held_reason, node.due) == ("cli:alice", "bench work", 1)
    assert (decisions(fleet), held.decision is not None) == ([("hold", "pending")], True)


def test_a_repair_that_acts_is_not_held(fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = "acting"
    assert hold(fleet, ALICE, BENCH, NOW).decision is None


def test_a_release_releases_the_repair_that_it_held(fleet: Store) -> None:
    carried_out(fleet, hold(fleet, ALICE, BENCH, NOW).decision, "held")
    release(fleet, ALICE, BENCH, NOW)
    assert decisions(fleet) == [("hold", "accepted"), ("release", "pending")]


def test_a_release_leaves_a_repair_that_a_person_held(fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = "held"
    hold(fleet, ALICE, BENCH, NOW)
    assert release(fleet, ALICE, BENCH, NOW).decision is None


def test_a_hold_that_was_not_taken_yet_is_void_after_the_release(fleet: Store) -> None:
    hold(fleet, ALICE, BENCH, NOW)
    release(fleet, ALICE, BENCH, NOW)
    assert decisions(fleet) == [("hold", "void")]


def test_both_are_in_the_audit(fleet: Store) -> None:
    hold(fleet, ALICE, BENCH, NOW)
    release(fleet, ALICE, BENCH, NOW)
    with fleet.read() as session:
        assert {"hold-node", "release-node"} <= set(session.exec(select(AuditRow.act)).all())


def test_no_repair_is_asked_for_on_a_held_node(fleet: Store) -> None:
    keep(fleet, a_node("gpu-08", held_by="cli:lea", held_reason="bench", held_at=NOW))
    with pytest.raises(Stale, match="gpu-08 is held by cli:lea: bench"):
        ask(fleet, ALICE, RepairRequest(node="gpu-08", action=Action.REBOOT, reason="x"), NOW)


@pytest.mark.parametrize(
    ("act", "asker", "reason", "error"),
    [
        (hold, EVE, "x", Refused),
        (hold, ALICE, " ", BadInput),
        (release, ALICE, "x", Stale),
        (release, EVE, "x", Refused),
    ],
)
def test_what_is_not_allowed_is_refused(fleet: Store, act: Any, asker: Identity, reason: str, error: Any) -> None:
    with pytest.raises(error):
        act(fleet, asker, HoldRequest(node="gpu-07", reason=reason), NOW)
    assert decisions(fleet) == []


def test_a_held_node_is_not_held_again(fleet: Store) -> None:
    hold(fleet, ALICE, BENCH, NOW)
    with pytest.raises(Stale, match="held by cli:alice already"):
        hold(fleet, ALICE, BENCH, NOW)


def test_a_release_reaches_a_hold_that_was_accepted_and_is_not_written_on_the_repair_yet(fleet: Store) -> None:
    carried_out(fleet, hold(fleet, ALICE, BENCH, NOW).decision, "proposed")
    release(fleet, ALICE, BENCH, NOW)
    assert decisions(fleet) == [("hold", "accepted"), ("release", "pending")]


def test_a_release_leaves_a_repair_that_was_released_before(fleet: Store) -> None:
    carried_out(fleet, hold(fleet, ALICE, BENCH, NOW).decision, "proposed")
    later = NOW + timedelta(seconds=1)
    more = {"request_id": "d-1", "repair_id": REPAIR, "revision": 2, "actor": "cli:lea", "channel": "cli"}
    ended = {"status": "accepted", "ended_at": later, "verified": True, "at": later}
    keep(fleet, DecisionRow(id="d-1", kind="release", **more, **ended))
    assert release(fleet, ALICE, BENCH, later).decision is None
