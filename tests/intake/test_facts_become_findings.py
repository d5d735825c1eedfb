"""What a scheduler says: kept when it changed, and a finding where somebody else keeps work off a node."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.seams import Ownership
from daytwo.intake import facts_unknown, observe_facts
from tests.intake.conftest import NOW

KILL = {"drained_by": "scheduler", "reason": "Kill task failed", "reason_by": "root"}
BOB = {"drained_by": "person", "reason": "bad fan", "reason_by": "bob", "reason_at": NOW - timedelta(days=3)}


def poll(intake: Any, *facts: Any, at: timedelta = timedelta()) -> tuple[str, ...]:
    return observe_facts(intake.store, "east", facts, now=NOW + at)


@pytest.mark.parametrize(
    ("states", "fields", "faults"),
    [
        (("IDLE",), {}, []),
        (("IDLE", "DRAIN"), KILL, ["slurm-drained"]),
        (("IDLE", "DRAIN"), BOB, ["slurm-drained-by-person"]),
        (("IDLE", "DRAIN"), {"drained_by": "ours", "ownership": Ownership.OURS}, []),
        (("DOWN",), {"responding": False}, ["slurm-down"]),
        (("DOWN", "DRAIN"), KILL, ["slurm-down", "slurm-drained"]),
        (("DOWN", "DRAIN"), BOB, ["slurm-drained-by-person"]),
        (("UNKNOWN",), {"responding": False}, ["slurm-down"]),
        (("UNKNOWN",), {}, []),
        (("DOWN",), {"rebooting": True}, []),
        (("DOWN", "DRAIN"), {"drained_by": "ours", "ownership": Ownership.HALF_DONE}, []),
    ],
)
def test_another_hand_on_a_node_is_a_finding(
    intake: Any, states: tuple[str, ...], fields: dict[str, Any], faults: list[str]
) -> None:
    poll(intake, intake.facts(*states, **fields))
    assert [row.fault for row in intake.findings()] == faults


def test_a_finding_ends_with_its_drain(intake: Any) -> None:
    poll(intake, intake.facts("DRAIN", **KILL))
    poll(intake, intake.facts("IDLE"))
    row = intake.findings()[0]
    assert (row.status, row.cleared_by) == ("cleared", "reading")


def test_a_finding_says_whose_drain_it_is_and_since_when(intake: Any) -> None:
    poll(intake, intake.facts("DRAIN", **BOB))
    row = intake.findings()[0]
    assert (row.evidence, row.detail["reason_by"], row.first_seen) == (["bad fan"], "bob", NOW - timedelta(days=3))


def test_another_reason_is_news(intake: Any) -> None:
    poll(intake, intake.facts("DRAIN", **BOB))
    poll(intake, intake.facts("DRAIN", **BOB | {"reason": "fan on order"}))
    row = intake.findings()[0]
    assert (row.count, row.detail["reason"]) == (2, "fan on order")


def test_only_a_change_makes_a_node_due(intake: Any) -> None:
    facts = intake.facts("DRAIN", **KILL)
    assert poll(intake, facts, intake.facts("IDLE", node="gpu-02")) == ("gpu-01", "gpu-02")
    before = intake.row()
    later = facts.model_copy(update={"at": NOW + timedelta(seconds=5)})
    assert poll(intake, later, intake.facts("IDLE", node="gpu-02"), at=timedelta(seconds=5)) == ()
    assert (intake.row().due, intake.row().facts_at) == (before.due, NOW)


def test_a_node_the_scheduler_leaves_out_is_unknown(intake: Any) -> None:
    poll(intake, intake.facts(), intake.facts(node="gpu-02"))
    assert poll(intake, intake.facts(node="gpu-02")) == ("gpu-01",)
    assert intake.row().facts is None


def test_a_node_nobody_declared_is_left_out(intake: Any) -> None:
    assert poll(intake, intake.facts(node="login-1")) == ()


def test_unknown_facts_end_no_finding(intake: Any) -> None:
    poll(intake, intake.facts("DRAIN", **KILL))
    before = intake.row().due
    assert facts_unknown(intake.store, "east", now=NOW) == ("gpu-01",)
    assert (intake.row().facts, intake.row().due) == (None, before + 1)
    assert [row.status for row in intake.findings()] == ["firing"]


def test_unknown_facts_are_news_once(intake: Any) -> None:
    poll(intake, intake.facts())
    changed = [facts_unknown(intake.store, "east", now=NOW) for _ in range(2)]
    assert changed == [("gpu-01",), ()]


def test_a_reading_from_before_a_repair_closed_does_not_fire_again(intake: Any) -> None:
    poll(intake, intake.facts("DRAIN", **KILL))
    intake.close_repair()
    poll(intake, intake.facts("DRAIN", **KILL), at=timedelta(seconds=2))
    assert [row.status for row in intake.findings()] == ["cleared"]


def test_a_drain_after_a_repair_closed_is_a_relapse(intake: Any) -> None:
    poll(intake, intake.facts("DRAIN", **KILL))
    intake.close_repair()
    poll(intake, intake.facts("DRAIN", **KILL, at=NOW + timedelta(seconds=9)), at=timedelta(seconds=9))
    assert [row.status for row in intake.findings()] == ["firing"]


def test_a_finding_is_put_right_even_if_the_facts_stayed(intake: Any) -> None:
    poll(intake, intake.facts())
    intake.send(intake.observation(fault="slurm-drained", entity="node"))
    assert poll(intake, intake.facts()) == ("gpu-01",)
    assert [row.status for row in intake.findings()] == ["cleared"]


@pytest.mark.parametrize(
    ("states", "fields", "ended"),
    [
        (("IDLE", "NOT_RESPONDING"), {"responding": False}, False),
        (("UNKNOWN",), {"responding": False}, False),
        (("IDLE",), {}, True),
        (("IDLE", "POWERED_DOWN", "NOT_RESPONDING"), {"responding": False}, True),
        (("REBOOT_ISSUED", "NOT_RESPONDING"), {"responding": False, "rebooting": True}, True),
    ],
)
def test_a_node_that_was_down_is_back_when_it_is_heard_and_not_when_it_is_resumed(
    intake: Any, states: tuple[str, ...], fields: dict[str, Any], ended: bool
) -> None:
    poll(intake, intake.facts("DOWN", "NOT_RESPONDING", responding=False, **KILL))
    poll(intake, intake.facts(*states, **fields))
    assert {row.status for row in intake.findings()} == {"cleared" if ended else "firing"}
