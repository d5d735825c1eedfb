"""Others' work on a node is seen for what it is, and is waited for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from daytwo.domain.others_hands import before_our_act, is_switched_off, others_work, remembering
from daytwo.domain.seams import NodeFacts, Ownership
from tests.builders import NOW, node_facts

WORK = {
    ("IDLE", "MAINTENANCE"): "reserved for maintenance",
    ("MIXED", "REBOOT_REQUESTED"): "somebody has asked for a reboot",
    ("DOWN", "REBOOT_ISSUED"): "somebody reboots it",
    ("FUTURE",): "not in service yet",
    ("IDLE", "POWER_DOWN"): "about to switch it off",
    ("IDLE", "POWERING_DOWN"): "switching it off",
    ("IDLE", "CLOUD", "POWERED_DOWN"): "has switched it off",
    ("MIXED", "NOT_RESPONDING", "POWERING_UP"): "switching it on, or boots it for other features",
    ("IDLE",): "",
    ("MIXED", "PLANNED"): "",
    ("IDLE", "PLANNED"): "",
    ("ALLOCATED", "CLOUD"): "",
    ("IDLE", "DYNAMIC_NORM"): "",
    ("IDLE", "RESERVED"): "",
    ("IDLE", "BLOCKED"): "",
    ("IDLE", "COMPLETING"): "",
    ("DOWN", "NOT_RESPONDING"): "",
    ("IDLE", "DRAIN", "INVALID_REG"): "",
}


def ours(*states: str, **fields: object) -> NodeFacts:
    return node_facts(*states, ownership=Ownership.OURS, drained_by="ours", **fields)


@pytest.mark.parametrize(("states", "says"), WORK.items(), ids=["+".join(states) for states in WORK])
def test_every_state_of_slurm_has_a_meaning(states: tuple[str, ...], says: str) -> None:
    found = others_work(node_facts(*states))
    assert (says in found) if says else found == ""


@pytest.mark.parametrize("word", ["POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN", "POWER_UP", "POWERING_UP"])
def test_a_node_that_is_switched_off_to_save_power_is_told_from_a_dead_one(word: str) -> None:
    assert is_switched_off(node_facts("IDLE", "CLOUD", word))
    assert not is_switched_off(node_facts("DOWN", "NOT_RESPONDING"))


def test_what_waits_for_a_person_says_for_whom() -> None:
    facts = node_facts("IDLE", "DRAIN", drained_by="person", reason="psu swap", reason_by="anna")
    assert others_work(facts) == "anna has taken the node: psu swap"


def test_a_pending_reboot_says_who_asked_for_it() -> None:
    facts = node_facts("IDLE", "REBOOT_REQUESTED", rebooting=True, reason="kernel", reason_by="anna")
    assert others_work(facts) == "planned work is under way: somebody has asked for a reboot: kernel [anna]"


@pytest.mark.parametrize("facts", [node_facts(planned="anna has it"), ours("IDLE", "DRAIN", planned="anna has it")])
def test_an_announced_maintenance_counts_under_our_marks_too(facts: NodeFacts) -> None:
    assert (others_work(facts), before_our_act(facts)) == ("anna has it", "anna has it")


def test_a_reboot_under_our_marks_is_not_ours_before_our_act() -> None:
    facts = ours("MIXED", "DRAIN", "REBOOT_REQUESTED", rebooting=True, reason="kernel update", reason_by="anna")
    assert (others_work(facts), "kernel update [anna]" in before_our_act(facts)) == ("", True)


def test_a_node_under_our_marks_that_is_switched_off_is_not_acted_on() -> None:
    assert "switched it off" in before_our_act(ours("IDLE", "CLOUD", "DRAIN", "POWERED_DOWN"))


def test_a_node_that_is_only_ours_is_waited_for_by_nobody() -> None:
    assert before_our_act(ours("IDLE", "DRAIN", "MAINTENANCE", "RESERVED")) == ""


def down(reason: str, by: str, **fields: object) -> NodeFacts:
    return node_facts("DOWN", reason=reason, reason_at=NOW, drained_by=by, ownership=Ownership.FOREIGN, **fields)


def test_a_persons_drain_stays_theirs_when_slurm_writes_its_own_reason_over_it() -> None:
    before = node_facts("DRAIN", reason="psu swap", reason_at=NOW, drained_by="person", ownership=Ownership.FOREIGN)
    over = node_facts("DRAIN", "INVALID_REG", reason="gres/gpu count", reason_at=NOW, drained_by="scheduler")
    assert remembering(before, over).ownership is Ownership.FOREIGN


def test_a_node_that_falls_under_a_reason_that_was_left_behind_is_nobodys_doing() -> None:
    before = node_facts("IDLE", reason="psu swap", reason_at=NOW)
    fallen = remembering(before, down("psu swap", "person"))
    again = remembering(fallen, down("psu swap", "person"))
    assert [facts.drained_by for facts in (fallen, again)] == ["scheduler", "scheduler"]


@pytest.mark.parametrize(
    "before",
    [
        None,
        node_facts("IDLE"),
        node_facts("IDLE", reason="psu swap", reason_at=NOW - timedelta(hours=1)),
        node_facts("DRAIN", reason="psu swap", reason_at=NOW, drained_by="person"),
    ],
)
def test_a_node_that_a_person_sets_down_is_theirs(before: NodeFacts | None) -> None:
    assert remembering(before, down("psu swap", "person")).drained_by == "person"
