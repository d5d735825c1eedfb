"""What a proposal asks for: which fault leads, which action, and what keeps it from acting by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.policy import Approval, Attempts, FaultRule, Policy
from daytwo.domain.situation import Situation
from daytwo.domain.triage import asking, triage
from daytwo.domain.verdicts import Propose
from daytwo.domain.vocabulary import Action, FaultClass, Mode, NodeRole, State
from daytwo.faults.catalogue import catalogue
from daytwo.faults.model import FLOOR
from tests.builders import GPU, NOW, a_finding, a_past_repair, a_situation, advice_for, an_open_repair

OTHER_GPU = "GPU-00000000-0000-0000-0000-000000000002"


def propose(situation: Situation, policy: Policy | None = None) -> Propose:
    verdict = triage(situation, policy or Policy(), catalogue(), NOW)
    assert isinstance(verdict, Propose), verdict
    return verdict


def asks_recovery(number: Any, fault: str = "xid-154", entity: str = GPU, **fields: Any) -> Any:
    return a_finding(fault, entity, detail={"recovery_action": number}, **{"id": 9} | fields)


@pytest.mark.parametrize(
    ("fault", "action"),
    [
        ("xid-48", Action.RESET_GPU),
        ("xid-64", Action.RESET_GPU),
        ("xid-79", Action.REBOOT),
        ("xid-95", Action.RESET_GPU),
        ("xid-119", Action.RESET_GPU),
        ("gpu-off-bus", Action.REBOOT),
        ("slurm-drained", Action.VERIFY),
        ("agent-silent", Action.INSPECT),
        ("xid-4711", Action.INSPECT),
        ("made-up-by-a-node", Action.INSPECT),
    ],
)
def test_the_catalogue_says_what_is_tried_first(fault: str, action: Action) -> None:
    assert advice_for(a_situation(a_finding(fault))).action is action


@pytest.mark.parametrize("fault", ["xid-154", "recovery-action"])
@pytest.mark.parametrize(
    ("number", "action"),
    [
        (1, Action.RESET_GPU),
        (2, Action.REBOOT),
        (3, Action.INSPECT),
        (4, Action.RESET_GPU),
        (5, Action.INSPECT),
        (6, Action.INSPECT),
        (None, Action.INSPECT),
        ("0x2", Action.INSPECT),
        (True, Action.INSPECT),
    ],
)
def test_the_drivers_number_decides(fault: str, number: Any, action: Action) -> None:
    assert advice_for(a_situation(asks_recovery(number, fault))).action is action


def test_a_recovery_action_of_zero_asks_nothing() -> None:
    assert triage(a_situation(asks_recovery(0)), Policy(), catalogue(), NOW).kind == "quiet"


def test_the_drivers_word_goes_before_the_advice_for_the_xid_beside_it() -> None:
    advice = advice_for(a_situation(a_finding("xid-48"), asks_recovery(2)))
    assert (advice.fault, advice.action) == ("xid-48", Action.REBOOT)


def test_of_two_readings_the_one_that_takes_away_more_counts() -> None:
    readings = (asks_recovery(1, id=8), asks_recovery(2, "recovery-action"))
    assert advice_for(a_situation(a_finding("xid-48"), *readings)).action is Action.REBOOT


def test_the_drivers_word_is_about_its_own_gpu() -> None:
    advice = advice_for(a_situation(a_finding("xid-119"), asks_recovery(2, entity=OTHER_GPU, first_seen=NOW)))
    assert {advice.fault, advice.action} == {"xid-154", Action.REBOOT}


@pytest.mark.parametrize("fault", ["xid-79", "gpu-off-bus"])
def test_a_gpu_off_the_bus_is_rebooted_although_the_driver_asks_for_a_reset(fault: str) -> None:
    advice = advice_for(a_situation(a_finding(fault), asks_recovery(1)))
    assert (advice.fault, advice.action) == (fault, Action.REBOOT)


def test_a_rule_of_the_site_goes_before_the_drivers_word() -> None:
    policy = Policy(faults={"xid-48": FaultRule(action=Action.POWER_CYCLE)})
    assert advice_for(a_situation(a_finding("xid-48"), asks_recovery(1)), policy).action is Action.POWER_CYCLE


def test_a_cleanup_belongs_to_the_xid_that_caused_it() -> None:
    cleanup = a_finding("xid-45", detail={"caused_by": 79})
    assert advice_for(a_situation(cleanup)).fault == "xid-79"


def test_a_cleanup_after_a_recorded_xid_asks_nobody() -> None:
    cleanup = a_finding("xid-45", detail={"caused_by": 31})
    assert triage(a_situation(cleanup), Policy(), catalogue(), NOW).kind == "watch"


def test_the_most_severe_fault_leads() -> None:
    advice = advice_for(a_situation(a_finding("slurm-drained", "node", id=2), a_finding("xid-48")))
    assert advice.fault == "xid-48"


def test_of_two_severe_faults_the_higher_rung_leads() -> None:
    advice = advice_for(a_situation(a_finding("xid-48"), a_finding("xid-79", OTHER_GPU, id=2)))
    assert advice.fault == "xid-79"


def test_all_that_is_wrong_with_a_node_is_one_proposal() -> None:
    advice = advice_for(a_situation(a_finding("xid-48"), a_finding("xid-79", OTHER_GPU, id=2)))
    assert (advice.findings, advice.faults, advice.entities) == ((2, 1), ("xid-79", "xid-48"), (OTHER_GPU, GPU))


def test_what_is_only_recorded_joins_on_the_same_gpu() -> None:
    advice = advice_for(
        a_situation(a_finding("xid-48"), a_finding("xid-63", id=2), a_finding("xid-13", OTHER_GPU, id=3))
    )
    assert advice.findings == (1, 2)


def test_every_test_of_every_fault_is_wanted_and_the_floor_always() -> None:
    policy = Policy(faults={"xid-48": FaultRule(verify=("clocks",)), "xid-79": FaultRule(verify=("site-burn-in",))})
    advice = advice_for(a_situation(a_finding("xid-48"), a_finding("xid-79", id=2)), policy)
    assert advice.verify == (*(test.value for test in FLOOR), "site-burn-in", "clocks")


def test_a_relapse_starts_at_the_next_rung() -> None:
    advice = advice_for(a_situation(a_finding("xid-79"), history=(a_past_repair("xid-79"),)))
    assert advice.action is Action.FAILOVER
    assert "relapse after r-20261130-120000-aaaaa" in advice.reason.lower()


@pytest.mark.parametrize(
    "past",
    [
        a_past_repair("xid-119"),
        a_past_repair("xid-48", closed_at=NOW - timedelta(hours=25)),
        a_past_repair("xid-48", outcome=State.DISMISSED, acted=False),
        a_past_repair("xid-48", outcome=State.AUTO_RESOLVED, acted=False),
        a_past_repair("xid-48", outcome=State.HANDED_OVER, acted=False),
    ],
    ids=["another fault", "long ago", "dismissed", "went away", "handed over untouched"],
)
def test_no_relapse_starts_at_the_first_rung(past: Any) -> None:
    assert advice_for(a_situation(a_finding("xid-48"), history=(past,))).action is Action.RESET_GPU


def test_a_relapse_after_the_last_rung_asks_a_person() -> None:
    past = a_past_repair("xid-79", action=Action.REMOVE, rung=8, outcome=State.REMOVED)
    advice = advice_for(a_situation(a_finding("xid-79"), history=(past,)))
    assert (advice.action, advice.rung) == (Action.INSPECT, 9)


def test_a_reboot_that_did_not_help_is_followed_by_a_power_cycle_in_the_same_repair() -> None:
    repair = an_open_repair(disturbed=True, rung=5, action=Action.REBOOT)
    assert advice_for(a_situation(a_finding("xid-79"), open_repair=repair)).action is Action.POWER_CYCLE


def test_what_the_tests_said_of_an_act_that_did_not_help_leads_the_next_proposal() -> None:
    failed = "reboot did not help: 6 of 7 tests for xid-79 passed; failed: no-new-xid (xid-119)"
    repair = an_open_repair(disturbed=True, rung=5, action=Action.REBOOT, failed=failed)
    advice = advice_for(a_situation(a_finding("xid-79"), open_repair=repair))
    assert advice.title == "still faulty; at first: GPU fell off the bus"
    assert advice.reason.startswith(f"R{failed[1:]}. Next: power-cycle. At first: The driver cannot reach the GPU")


def test_a_fault_that_is_seen_after_an_act_is_named_beside_the_first() -> None:
    repair = an_open_repair(disturbed=True, rung=5, failed="reboot did not help")
    advice = advice_for(a_situation(a_finding("xid-79"), a_finding("xid-119", id=2), open_repair=repair))
    assert advice.faults == ("xid-79", "xid-119")


def test_a_relapse_with_no_spare_and_no_boot_left_asks_a_person() -> None:
    able = frozenset({Action.REBOOT, Action.POWER_CYCLE, Action.REMOVE})
    situation = a_situation(a_finding("xid-79"), history=(a_past_repair("xid-79"),), able=able)
    assert advice_for(situation).action is Action.INSPECT


def test_a_repair_never_steps_down_when_another_fault_leads_it() -> None:
    repair = an_open_repair(disturbed=True, rung=6, action=Action.POWER_CYCLE)
    advice = advice_for(a_situation(a_finding("xid-48"), open_repair=repair))
    assert (advice.action, advice.rung) == (Action.FAILOVER, 7)


def test_a_repair_that_has_done_nothing_may_step_down() -> None:
    repair = an_open_repair(rung=4, action=Action.REBOOT)
    assert advice_for(a_situation(a_finding("xid-48"), open_repair=repair)).action is Action.RESET_GPU


def boots(*hours_ago: int) -> tuple[Any, ...]:
    return tuple(a_past_repair("xid-109", closed_at=NOW - timedelta(hours=hours)) for hours in hours_ago)


@pytest.mark.parametrize(
    ("history", "action"),
    [
        ((), Action.REBOOT),
        (boots(25), Action.REBOOT),
        (boots(23), Action.INSPECT),
        (boots(25, 100), Action.INSPECT),
        (boots(25, 169), Action.REBOOT),
        ((a_past_repair("xid-109", acted=False),), Action.REBOOT),
        ((a_past_repair("xid-109", action=Action.RESET_GPU, rung=3),), Action.REBOOT),
    ],
    ids=["none", "a day ago", "today", "two this week", "two, one older", "not carried out", "a reset is no boot"],
)
def test_after_so_many_boots_a_person_must_look(history: tuple[Any, ...], action: Action) -> None:
    assert advice_for(a_situation(a_finding("xid-79"), history=history)).action is action


def test_the_number_of_boots_is_the_sites() -> None:
    policy = Policy(attempts=Attempts(per_day=2, per_week=3))
    assert advice_for(a_situation(a_finding("xid-79"), history=boots(1)), policy).action is Action.REBOOT


AUTO = FaultRule(mode=Mode.AUTO)


def test_an_automatic_fault_is_approved_by_the_policy() -> None:
    assert advice_for(a_situation(a_finding()), Policy(faults={"xid-79": AUTO})).mode is Mode.AUTO


@pytest.mark.parametrize(
    ("situation", "rule"),
    [
        (a_situation(a_finding(), role=NodeRole.LOGIN), "never automatic on a login node"),
        (a_situation(a_finding(), role=NodeRole.CONTROLLER), "never automatic on a controller node"),
        (a_situation(a_finding(), role=NodeRole.STORAGE), "never automatic on a storage node"),
        (a_situation(a_finding(), facts=None), "never automatic while the scheduler cannot be read"),
        (a_situation(a_finding(), history=(a_past_repair(),)), "failover is never automatic"),
        (a_situation(a_finding(), history=boots(1)), "only a person can look"),
        (a_situation(a_finding("agent-silent", "node")), "only a person can look"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_some_things_are_never_automatic(situation: Situation, rule: str) -> None:
    verdict = propose(situation, Policy(default=AUTO))
    assert verdict.advice.mode is Mode.RECOMMEND
    assert rule in verdict.rules


@pytest.mark.parametrize("action", [Action.REBOOT, Action.POWER_CYCLE, Action.FAILOVER])
def test_silence_never_interrupts_whatever_the_policy_says(action: Action) -> None:
    rule = FaultRule(mode=Mode.AUTO, action=action, contain=True)
    verdict = propose(a_situation(a_finding("agent-silent", "node")), Policy(faults={"agent-silent": rule}))
    assert (verdict.advice.action, verdict.contain) == (Action.INSPECT, False)


CONTAINED = ["xid-48", "xid-79", "xid-95", "xid-119", "xid-120", "xid-140", "gpu-off-bus", "nvml-unreadable"]


@pytest.mark.parametrize("fault", CONTAINED)
def test_a_node_on_which_new_work_would_fail_is_contained(fault: str) -> None:
    assert propose(a_situation(a_finding(fault, first_seen=NOW - timedelta(minutes=5)))).contain


@pytest.mark.parametrize("fault", ["xid-64", "slurm-drained", "agent-silent", "xid-4711"])
def test_no_other_node_is_contained_unasked(fault: str) -> None:
    assert not propose(a_situation(a_finding(fault))).contain


@pytest.mark.parametrize(("number", "contained"), [(1, True), (2, True), (3, False), (4, True), (5, False)])
def test_the_drivers_number_says_whether_new_work_fails(number: int, contained: bool) -> None:
    assert propose(a_situation(asks_recovery(number))).contain is contained


@pytest.mark.parametrize(
    ("situation", "policy", "because"),
    [
        (a_situation(a_finding()), Policy(contain_unasked=False), "the policy contains nothing unasked"),
        (a_situation(a_finding(), role=NodeRole.LOGIN), Policy(), "it is a login node"),
        (a_situation(a_finding(), role=NodeRole.CONTROLLER), Policy(), "it is a controller node"),
        (a_situation(a_finding(), role=NodeRole.STORAGE), Policy(), "it is a storage node"),
        (a_situation(a_finding(), facts=None), Policy(), "the scheduler cannot be read"),
        (
            a_situation(a_finding(), pool_contained=5),
            Policy(),
            "out in its pool: 5; the budget contains 5 unasked",
        ),
        (
            a_situation(a_finding(), pool_contained=1, pool_nodes=3),
            Policy(),
            "out in its pool: 1; the budget contains 1 unasked",
        ),
        (
            a_situation(a_finding(), pool_contained=25, pool_nodes=9000),
            Policy(),
            "out in its pool: 25; the budget contains 25 unasked",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_containing_has_its_limits_and_says_which(situation: Situation, policy: Policy, because: str) -> None:
    verdict = propose(situation, policy)
    assert not verdict.contain
    assert f"not contained: {because}" in verdict.rules


def test_one_node_of_the_smallest_pool_may_be_contained() -> None:
    assert propose(a_situation(a_finding(), pool_nodes=1)).contain


def test_a_node_that_is_contained_stays_so_when_the_budget_is_full() -> None:
    situation = a_situation(a_finding(), open_repair=an_open_repair(contained=True), pool_contained=5)
    assert propose(situation).contain


def test_a_site_may_contain_for_a_fault_that_the_catalogue_does_not() -> None:
    assert propose(a_situation(a_finding("xid-64")), Policy(faults={"xid-64": FaultRule(contain=True)})).contain


def test_every_rule_that_fired_is_named() -> None:
    policy = Policy(classes={FaultClass.BOARD: AUTO}, faults={"xid-79": FaultRule(action=Action.POWER_CYCLE)})
    rules = propose(a_situation(a_finding()), policy).rules
    assert rules == ("mode of xid-79 by class rule", "action of xid-79 by fault rule", "contain of xid-79 by catalogue")


def test_only_what_asks_somebody_makes_a_node_unhealthy() -> None:
    situation = a_situation(a_finding("xid-13"), a_finding("xid-79", id=2))
    assert asking(situation, Policy(), catalogue()) == ("xid-79",)


ABLE = frozenset({Action.VERIFY, Action.INSPECT, Action.TELL_OWNER, Action.REMOVE, Action.REBOOT})


def test_a_rung_that_no_driver_can_climb_is_left_out_and_said() -> None:
    advice = advice_for(a_situation(a_finding("xid-48"), able=ABLE))
    assert (advice.action, advice.ladder) == (Action.REBOOT, (Action.REBOOT, Action.REMOVE))
    assert "No driver can reset-gpu." in advice.reason


def test_where_no_rung_can_be_climbed_a_person_must_look() -> None:
    nothing = frozenset({Action.VERIFY, Action.INSPECT, Action.TELL_OWNER})
    assert advice_for(a_situation(a_finding("xid-48"), able=nothing)).action is Action.INSPECT


def test_an_action_that_needs_two_persons_is_never_automatic() -> None:
    policy = Policy(
        default=FaultRule(mode=Mode.AUTO), approval=Approval(two_person=(Action.RESET_GPU,), never_automatic=())
    )
    assert advice_for(a_situation(a_finding("xid-48")), policy).mode is Mode.RECOMMEND
