"""Requests to nodes: asked once, ended once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from daytwo import node_requests
from daytwo.domain.errors import BadInput, NotFound
from daytwo.node_requests import NodeRequest
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
QUESTION = NodeRequest(id="q1", cluster="east", node="gpu-01", kind="probe-gpus", ttl_seconds=30)


def give(store: Store, state: str, *, boot_id: str = "boot-1", at: datetime = NOW) -> list[str]:
    answer: Any = {"id": "q1", "state": state, "boot_id": boot_id}
    with store.write() as session:
        node = session.get(NodeRow, ("east", "gpu-01")) or NodeRow(cluster="east", name="gpu-01", state_since=NOW)
        node.boot_id = boot_id
        session.add(node)
        node_requests.offer(session, node, now=at)
        return node_requests.answer(session, node, [answer], now=at)


def test_asking_again_asks_nothing_new(store: Store) -> None:
    node_requests.ask(store, QUESTION, now=NOW)
    give(store, "accepted")
    assert node_requests.ask(store, QUESTION, now=NOW + timedelta(hours=1)).state == "accepted"


def test_an_id_cannot_ask_two_things(store: Store) -> None:
    node_requests.ask(store, QUESTION, now=NOW)
    with pytest.raises(BadInput, match="q1"):
        node_requests.ask(store, NodeRequest("q1", "east", "gpu-01", "probe-kernel", 30), now=NOW)


@pytest.mark.parametrize("unknown", [node_requests.answer_for, node_requests.withdraw])
def test_an_unknown_request_is_not_found(store: Store, unknown: Any) -> None:
    with pytest.raises(NotFound):
        unknown(store, "q1", now=NOW)


def test_an_answer_that_comes_again_is_taken_once(store: Store) -> None:
    node_requests.ask(store, QUESTION, now=NOW)
    assert [give(store, state) for state in ("accepted", "accepted", "done", "done", "accepted")] == [[]] * 5
    assert node_requests.answer_for(store, "q1", now=NOW).state == "done"


@pytest.mark.parametrize(("first", "then"), [("done", "failed"), ("failed", "done")])
def test_what_has_ended_stays_as_it_ended(store: Store, first: str, then: str) -> None:
    node_requests.ask(store, QUESTION, now=NOW)
    give(store, first)
    assert give(store, then) == ["q1"]
    assert node_requests.withdraw(store, "q1", now=NOW).state == first


def test_what_was_withdrawn_is_answered_to_nobody(store: Store) -> None:
    node_requests.ask(store, QUESTION, now=NOW)
    node_requests.withdraw(store, "q1", now=NOW)
    assert give(store, "done") == ["q1"]


def test_an_agent_that_never_accepts_cannot_be_reached(store: Store) -> None:
    node_requests.ask(store, QUESTION, now=NOW)
    row = node_requests.answer_for(store, "q1", now=NOW + timedelta(seconds=30))
    assert (row.state, row.accepted_at) == ("lapsed", None)


def test_accepting_gives_as_long_again_to_answer(store: Store) -> None:
    node_requests.ask(store, QUESTION, now=NOW)
    give(store, "accepted", at=NOW + timedelta(seconds=20))
    states = [node_requests.answer_for(store, "q1", now=NOW + timedelta(seconds=at)).state for at in (49, 50)]
    assert states == ["accepted", "lapsed"]
