"""A node shows what people have asked of it: held, snoozed, its agent quiet; until when, by whom and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from daytwo.domain.seams import Ownership
from daytwo.domain.vocabulary import Channel
from daytwo.service.decisions import Identity
from daytwo.service.evidence import QuietRequest, quiesce
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, NodeRequestRow, NodeRow
from tests.builders import NOW, node_facts
from tests.cli.conftest import Cli
from tests.rows import REPAIR, a_finding_row, a_node, a_repair, keep

BOTH = pytest.mark.parametrize("words", [("nodes", "list"), ("nodes", "show", "gpu-07")], ids=" ".join)


def dismissed(store: Store, until: datetime) -> None:
    with store.write() as session:
        session.merge(a_repair(state="dismissed", open_key=None, snooze_until=until, outcome="fan on Tuesday"))
    values = {"id": "d-1", "request_id": "request-1", "repair_id": REPAIR, "revision": 2, "kind": "dismiss"}
    who = {"actor": "cli:lea", "channel": "cli", "verified": True, "reason": "fan on Tuesday"}
    keep(store, DecisionRow(**values | who, at=NOW, status="accepted", ended_at=NOW))


def quiet(store: Store, *, ended: datetime, seconds: float = 600, **fields: Any) -> None:
    """An agent that has let go as it was asked to."""
    asker = Identity(actor="cli:alice", channel=Channel.CLI, verified=True)
    request = quiesce(store, asker, QuietRequest(node="gpu-07", seconds=seconds, reason="new driver"), ended)
    answer = {"let_go": True, "holders": [], "quiet_seconds": seconds}
    with store.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).boot_id = "boot-1"
        row = session.get_one(NodeRequestRow, request.id)
        for name, value in (
            {"state": "done", "boot_id": "boot-1", "ended_at": ended, "result": answer} | fields
        ).items():
            setattr(row, name, value)


@BOTH
def test_a_snooze_is_shown_with_until_when_by_whom_and_why(cli: Cli, fleet: Store, words: tuple[str, ...]) -> None:
    until = datetime.now(UTC) + timedelta(hours=8, seconds=30)
    dismissed(fleet, until)
    keep(fleet, a_finding_row(), a_finding_row("xid-48"))
    told = f"xid-79 snoozed until {until:%Y-%m-%d %H:%M:%SZ} (8h more) by cli:lea: fan on Tuesday"
    assert told in cli(*words).out


@BOTH
def test_a_snooze_that_is_over_is_not_shown(cli: Cli, fleet: Store, words: tuple[str, ...]) -> None:
    dismissed(fleet, datetime.now(UTC) - timedelta(seconds=1))
    assert "snoozed" not in cli(*words).out


def test_a_node_says_when_the_silence_of_its_agent_counts(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).last_heard_at = datetime.now(UTC)
    assert "s ago (silent after 3m)" in cli("nodes", "show", "gpu-07").out


@pytest.mark.parametrize(("state", "told"), [("healthy", True), ("pending", False)])
def test_a_reading_from_before_the_marks_came_off_says_so(cli: Cli, fleet: Store, state: str, told: bool) -> None:
    marked = node_facts("IDLE", "DRAIN", ownership=Ownership.OURS, drained_by="ours", reason="daytwo r-1: under repair")
    with fleet.write() as session:
        row = session.get_one(NodeRow, ("east", "gpu-07"))
        row.facts, row.facts_at, row.state = marked.model_dump(mode="json"), datetime.now(UTC), state
    assert ("s ago, not read since daytwo's marks came off" in cli("nodes", "show", "gpu-07").out) == told


@BOTH
def test_an_agent_that_holds_no_gpu_is_shown(cli: Cli, fleet: Store, words: tuple[str, ...]) -> None:
    quiet(fleet, ended=datetime.now(UTC))
    shown = cli(*words).out
    assert ("its agent holds no GPU until" in shown, "by cli:alice: new driver" in shown) == (True, True)


@pytest.mark.parametrize(
    "fields", [{"boot_id": "boot-0"}, {"state": "lapsed"}, {"result": {"let_go": False}}, {"result": {"let_go": True}}]
)
def test_an_agent_that_may_hold_gpus_again_is_not_shown_as_quiet(
    cli: Cli, fleet: Store, fields: dict[str, Any]
) -> None:
    quiet(fleet, ended=datetime.now(UTC), **fields)
    assert "holds no GPU" not in cli("nodes", "show", "gpu-07").out


def test_the_newest_request_to_an_agent_counts(cli: Cli, fleet: Store) -> None:
    quiet(fleet, ended=datetime.now(UTC) - timedelta(seconds=5))
    quiet(fleet, ended=datetime.now(UTC), seconds=0, result={"quiet_seconds": 0.0})
    assert "holds no GPU" not in cli("nodes", "show", "gpu-07").out


def test_an_agent_cannot_be_quiet_for_longer_than_it_was_asked(cli: Cli, fleet: Store) -> None:
    quiet(fleet, ended=datetime.now(UTC) - timedelta(minutes=11), result={"let_go": True, "quiet_seconds": 1e12})
    assert "holds no GPU" not in cli("nodes", "show", "gpu-07").out


@BOTH
def test_a_hold_is_shown_once_in_a_list(cli: Cli, fleet: Store, words: tuple[str, ...]) -> None:
    held = {"held_by": "cli:lea", "held_reason": "bench", "held_at": NOW}
    with fleet.write() as session:
        session.merge(a_node(state="paused", state_why="held by cli:lea: bench", **held))
    shown = cli(*words).out
    assert shown.count("held by cli:lea") == (1 if words[1] == "list" else 2)


def test_a_node_says_what_its_scheduler_says_and_since_when(cli: Cli, fleet: Store) -> None:
    read = datetime.now(UTC) - timedelta(hours=3, minutes=5, seconds=20)
    with fleet.write() as session:
        row = session.get_one(NodeRow, ("east", "gpu-07"))
        row.facts, row.facts_at, row.last_heard_at = {"states": ["IDLE"], "reason": ""}, read, read
    shown = cli("nodes", "show", "gpu-07").out
    assert (f"so since {read:%Y-%m-%d %H:%M:%SZ} (3h 5m)" in shown, "heard 3h 5m ago" in shown) == (True, True)
