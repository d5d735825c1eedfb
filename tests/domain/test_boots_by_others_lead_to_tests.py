"""A boot by another hand, or another driver, leads to tests and not to a repair: it is looked whether that helped."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.situation import Situation
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose, Verdict, Withhold
from daytwo.domain.vocabulary import Action, Finding, Mode, State
from daytwo.faults.catalogue import catalogue
from tests.builders import NOW, a_finding, a_past_repair, a_situation, advice_for, an_open_repair, node_facts

HOUR = timedelta(hours=1)


def judged(situation: Situation, policy: Policy | None = None) -> Verdict:
    return triage(situation, policy or Policy(), catalogue(), NOW)


def old(fault: str = "xid-79", **fields: Any) -> Finding:
    """A fault that was seen in the boot before this one, two hours ago."""
    return a_finding(fault, **{"first_seen": NOW - 2 * HOUR, "boot_id": "boot-0"} | fields)


def changed(ago: timedelta) -> Finding:
    """The driver was changed so long ago."""
    detail = {"before": "570.86", "after": "580.65"}
    return a_finding("driver-changed", "node", id=9, first_seen=NOW - ago, detail=detail)


def test_a_fault_of_an_earlier_boot_is_tested_and_not_booted_away_again() -> None:
    advice = advice_for(a_situation(old()))
    assert (advice.action, "somebody else has booted" in advice.reason.lower()) == (Action.VERIFY, True)


def test_a_fault_of_this_boot_is_repaired() -> None:
    assert advice_for(a_situation(old(boot_id="boot-1"))).action is Action.REBOOT


def test_the_schedulers_boot_time_counts_where_no_boot_id_is_known() -> None:
    facts = node_facts(boot_time=NOW - HOUR)
    assert advice_for(a_situation(old(boot_id=None), facts=facts)).action is Action.VERIFY


def test_a_part_that_must_be_swapped_is_not_tested_away() -> None:
    assert advice_for(a_situation(old("row-remap-failed"))).action is not Action.VERIFY


def test_a_boot_of_our_own_leads_to_the_next_rung() -> None:
    opened = an_open_repair(disturbed=True, rung=5)
    assert advice_for(a_situation(old(), open_repair=opened)).action is Action.POWER_CYCLE


def test_a_repair_that_is_only_proposed_asks_for_tests_after_a_boot_by_another_hand() -> None:
    assert advice_for(a_situation(old(), open_repair=an_open_repair())).action is Action.VERIFY


@pytest.mark.parametrize(("booted_at", "asks"), [(NOW - HOUR, True), (NOW - 4 * HOUR, False)])
def test_a_dismissal_from_before_a_boot_by_another_hand_does_not_hold(booted_at: Any, asks: bool) -> None:
    past = a_past_repair(outcome=State.DISMISSED, acted=False, closed_at=NOW - 1.5 * HOUR, snooze_until=NOW + 24 * HOUR)
    situation = a_situation(old(), history=(past,), facts=node_facts(boot_time=booted_at))
    assert isinstance(judged(situation), Propose if asks else Withhold)


def test_a_changed_driver_is_tested_when_it_has_settled() -> None:
    assert advice_for(a_situation(changed(HOUR))).action is Action.VERIFY


def test_what_fires_around_a_change_of_the_driver_is_held() -> None:
    situation = a_situation(changed(timedelta(minutes=3)), a_finding(first_seen=NOW - timedelta(minutes=4)))
    verdict = judged(situation)
    assert isinstance(verdict, Withhold)
    assert (verdict.cause, verdict.look_again_at) == ("planned", NOW + timedelta(minutes=7))
    assert "the driver was changed from 570.86 to 580.65" in verdict.why


def test_new_work_is_kept_off_a_node_whose_gpu_is_lost_while_its_driver_settles() -> None:
    verdict = judged(a_situation(changed(timedelta(minutes=3)), a_finding(first_seen=NOW - timedelta(minutes=4))))
    assert isinstance(verdict, Withhold)
    assert verdict.contain


def test_what_fired_around_a_change_of_the_driver_is_tested_and_not_repaired() -> None:
    situation = a_situation(changed(HOUR), a_finding(first_seen=NOW - HOUR - timedelta(minutes=5)))
    assert advice_for(situation).action is Action.VERIFY


def test_what_fires_long_after_a_change_of_the_driver_is_repaired() -> None:
    assert advice_for(a_situation(changed(HOUR), a_finding())).action is Action.REBOOT


def test_nothing_is_automatic_while_another_tool_repairs_the_node_too() -> None:
    policy = Policy(faults={"xid-79": FaultRule(mode=Mode.AUTO)})
    rival = a_finding("rival-healer", "node", id=9)
    modes = [advice_for(a_situation(*found), policy).mode for found in ((a_finding(),), (a_finding(), rival))]
    assert modes == [Mode.AUTO, Mode.RECOMMEND]
