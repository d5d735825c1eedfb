"""Which of the four answers a node gets, and why."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.seams import Ownership
from daytwo.domain.situation import Situation
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose, Quiet, Verdict, Watch, Withhold
from daytwo.domain.vocabulary import Action, FindingStatus, Mode, State
from daytwo.domain.withholding import given_away
from daytwo.faults.catalogue import catalogue
from tests.builders import GPU, NOW, a_finding, a_past_repair, a_situation, an_open_repair, node_facts


def judge(situation: Situation, policy: Policy | None = None) -> Verdict:
    return triage(situation, policy or Policy(), catalogue(), NOW)


def rule(fault: str, **fields: Any) -> Policy:
    return Policy(faults={fault: FaultRule(**fields)})


def test_nothing_firing_is_quiet() -> None:
    assert isinstance(judge(a_situation(a_finding(status=FindingStatus.CLEARED))), Quiet)


def test_an_open_repair_without_a_firing_fault_is_quiet_and_named() -> None:
    verdict = judge(a_situation(open_repair=an_open_repair()))
    assert isinstance(verdict, Quiet)
    assert "r-20261130-142100-x7k2q" in verdict.why


@pytest.mark.parametrize(
    "fault", ["xid-13", "xid-31", "xid-43", "xid-45", "xid-63", "xid-94", "slurm-drained-by-person"]
)
def test_what_the_catalogue_only_records_asks_nobody(fault: str) -> None:
    assert isinstance(judge(a_situation(a_finding(fault))), Watch)


def test_a_fault_that_is_switched_off_is_quiet() -> None:
    assert isinstance(judge(a_situation(a_finding("xid-79")), rule("xid-79", mode=Mode.OFF)), Quiet)


def test_a_persons_drain_is_not_asked_about_whatever_the_policy_says() -> None:
    policy = rule("slurm-drained-by-person", mode=Mode.RECOMMEND)
    assert isinstance(judge(a_situation(a_finding("slurm-drained-by-person")), policy), Watch)


def test_a_fault_is_watched_until_it_has_fired_for_long_enough() -> None:
    policy = rule("xid-79", debounce_seconds=90)
    verdict = judge(a_situation(a_finding(first_seen=NOW - timedelta(seconds=60))), policy)
    assert isinstance(verdict, Watch)
    assert verdict.look_again_at == NOW + timedelta(seconds=30)


def test_a_fault_asks_as_soon_as_it_has_fired_for_long_enough() -> None:
    policy = rule("xid-79", debounce_seconds=60)
    assert isinstance(judge(a_situation(a_finding(first_seen=NOW - timedelta(seconds=60))), policy), Propose)


@pytest.mark.parametrize(
    "facts",
    [
        node_facts("IDLE", "DRAIN", drained_by="person", ownership=Ownership.FOREIGN, reason="disk swap"),
        node_facts("IDLE", drained_by="nobody", ownership=Ownership.FOREIGN),
        node_facts("MAINT"),
        node_facts("IDLE", "REBOOT_ISSUED"),
        node_facts("IDLE", "REBOOT_REQUESTED"),
        node_facts("POWERED_DOWN"),
        node_facts("IDLE", rebooting=True),
    ],
    ids=lambda facts: "+".join(facts.states) + f"-{facts.ownership.value}",
)
def test_planned_work_of_others_is_not_interfered_with(facts: Any) -> None:
    verdict = judge(a_situation(a_finding(), facts=facts))
    assert isinstance(verdict, Withhold)
    assert (verdict.cause, verdict.contain) == ("planned", False)


@pytest.mark.parametrize("ownership", [Ownership.OURS, Ownership.HALF_DONE])
def test_our_own_marks_are_not_planned_work(ownership: Ownership) -> None:
    facts = node_facts("MAINT", "DRAIN", "REBOOT_ISSUED", ownership=ownership, drained_by="ours", rebooting=True)
    assert isinstance(judge(a_situation(a_finding(), facts=facts)), Propose)


def test_slurms_own_drain_is_not_planned_work() -> None:
    facts = node_facts("IDLE", "DRAIN", drained_by="scheduler", ownership=Ownership.FOREIGN)
    assert isinstance(judge(a_situation(a_finding(), facts=facts)), Propose)


def dismissed(**fields: Any) -> Any:
    values = {"outcome": State.DISMISSED, "acted": False, "snooze_until": NOW + timedelta(hours=8)}
    return a_past_repair(**values | fields)


def test_a_dismissed_fault_sleeps_until_its_snooze_ends() -> None:
    verdict = judge(a_situation(a_finding(), history=(dismissed(),)))
    assert isinstance(verdict, Withhold)
    assert (verdict.cause, verdict.look_again_at) == ("snoozed", NOW + timedelta(hours=8))


def test_a_dismissal_lifts_containment() -> None:
    verdict = judge(a_situation(a_finding(), history=(dismissed(),)))
    assert isinstance(verdict, Withhold)
    assert not verdict.contain


def test_companions_of_a_dismissed_fault_sleep_with_it() -> None:
    history = (dismissed(faults=("xid-79", "gpu-off-bus")),)
    assert isinstance(judge(a_situation(a_finding("gpu-off-bus"), history=history)), Withhold)


@pytest.mark.parametrize(("entity", "answer"), [(GPU, Withhold), ("GPU-another", Propose)])
def test_the_drivers_word_on_the_same_gpu_sleeps_with_a_dismissed_fault(entity: str, answer: type[Verdict]) -> None:
    word = a_finding("recovery-action", entity, detail={"recovery_action": 2})
    assert isinstance(judge(a_situation(word, history=(dismissed(entities=(GPU,)),))), answer)


@pytest.mark.parametrize(("entity", "answer"), [(GPU, Withhold), ("GPU-another", Propose)])
def test_a_late_sign_that_the_gpu_is_gone_sleeps_with_the_xid_that_said_so(entity: str, answer: type[Verdict]) -> None:
    history = (dismissed(entities=(GPU,)),)
    assert isinstance(judge(a_situation(a_finding("gpu-off-bus", entity), history=history)), answer)


def test_another_fault_is_not_covered_by_a_dismissal() -> None:
    situation = a_situation(a_finding(), a_finding("xid-119", id=2), history=(dismissed(),))
    verdict = judge(situation)
    assert isinstance(verdict, Propose)
    assert verdict.advice.fault == "xid-119"


def test_a_snooze_that_has_ended_covers_nothing() -> None:
    assert isinstance(judge(a_situation(a_finding(), history=(dismissed(snooze_until=NOW),))), Propose)


def test_somebody_who_took_note_is_not_asked_again_within_a_day() -> None:
    noted = a_past_repair("xid-999", action=Action.INSPECT, rung=0, acted=False)
    verdict = judge(a_situation(a_finding("xid-999"), history=(noted,)))
    assert isinstance(verdict, Withhold)
    assert (verdict.cause, verdict.look_again_at) == ("noted", noted.closed_at + timedelta(days=1))


def test_a_node_that_is_waiting_for_somebody_who_took_note_stays_contained() -> None:
    noted = a_past_repair(action=Action.INSPECT, acted=False)
    verdict = judge(a_situation(a_finding(), history=(noted,)))
    assert isinstance(verdict, Withhold)
    assert verdict.contain


REMOVED = a_past_repair(outcome=State.REMOVED, action=Action.REMOVE, rung=8)


@pytest.mark.parametrize("outcome", [State.REMOVED, State.HANDED_OVER])
def test_a_node_that_was_given_away_is_asked_nothing_more_while_its_marks_stand(outcome: State) -> None:
    marked = node_facts("IDLE", "DRAIN", ownership=Ownership.OURS, mark_repair_id=REMOVED.repair_id)
    past = REMOVED.model_copy(update={"outcome": outcome})
    verdict = judge(a_situation(a_finding("xid-79"), history=(past,), facts=marked))
    assert isinstance(verdict, Withhold)
    assert (verdict.cause, verdict.contain) == ("retired", False)


def test_the_newest_end_is_told_of_a_node_that_carries_the_marks_of_one_before() -> None:
    marked = node_facts("IDLE", "DRAIN", ownership=Ownership.OURS, mark_repair_id=REMOVED.repair_id)
    later = REMOVED.model_copy(update={"outcome": State.HANDED_OVER, "repair_id": "r-later"})
    said = given_away(a_situation(history=(later, REMOVED), facts=marked))
    assert said.startswith(
        f"handed-over with r-later; the marks of {REMOVED.repair_id} still stand; to test and return"
    )
    assert said.endswith("/gpu-07 --action verify")


def test_a_removed_node_that_somebody_put_back_is_judged_again() -> None:
    assert isinstance(judge(a_situation(a_finding("xid-79"), history=(REMOVED,), facts=node_facts())), Propose)


def test_a_held_node_is_not_asked_about_and_not_contained() -> None:
    verdict = triage(a_situation(a_finding("xid-79"), held="held by cli:ann: bench"), Policy(), catalogue(), NOW)
    assert isinstance(verdict, Withhold)
    assert (verdict.cause, verdict.contain, verdict.why) == ("held", False, "held by cli:ann: bench")
