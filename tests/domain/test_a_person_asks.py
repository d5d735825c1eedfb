"""A person's wish beside what triage says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from daytwo.domain.asked import ASKED, Asked, chosen
from daytwo.domain.policy import Policy
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose, Verdict
from daytwo.domain.vocabulary import Action, Mode, Severity
from daytwo.faults.catalogue import catalogue
from tests.builders import NOW, a_finding, a_situation


def verdict_of(*faults: str) -> Verdict:
    return triage(a_situation(*(a_finding(fault) for fault in faults)), Policy(), catalogue(), NOW)


def wish(action: Action = Action.REBOOT) -> Asked:
    return Asked(action=action, by="cli:ann", why="new firmware", at=NOW)


def test_on_a_healthy_node_the_wish_is_proposed_and_asks_for_approval() -> None:
    verdict = chosen(verdict_of(), wish(), disturbed=False)
    assert isinstance(verdict, Propose)
    advice = verdict.advice
    assert (advice.action, advice.fault, advice.mode) == (Action.REBOOT, ASKED, Mode.RECOMMEND)
    assert (advice.severity, advice.reason) == (Severity.DEGRADED, "cli:ann: new firmware")


@pytest.mark.parametrize(
    ("action", "disturbed", "fault"),
    [(Action.REBOOT, False, ASKED), (Action.VERIFY, False, "xid-48"), (Action.REBOOT, True, "xid-48")],
    ids=["triage wants less", "triage wants more", "something was done"],
)
def test_a_fault_that_comes_leads_when_it_wants_more(action: Action, disturbed: bool, fault: str) -> None:
    verdict = chosen(verdict_of("xid-48"), wish(action), disturbed=disturbed)
    assert isinstance(verdict, Propose)
    assert verdict.advice.fault == fault


def test_without_a_wish_it_is_what_triage_says() -> None:
    verdict = verdict_of("xid-48")
    assert chosen(verdict, None, disturbed=False) is verdict


@pytest.mark.parametrize(("seen_after", "fault"), [(0, ASKED), (60, "xid-48")], ids=["known then", "seen again since"])
def test_tests_that_were_asked_for_judge_what_was_known_then(seen_after: int, fault: str) -> None:
    finding = a_finding("xid-48", last_seen=NOW + timedelta(seconds=seen_after))
    verdict = triage(a_situation(finding), Policy(), catalogue(), NOW)
    verdict = chosen(verdict, wish(Action.VERIFY), disturbed=False, findings=(finding,))
    assert isinstance(verdict, Propose)
    assert verdict.advice.fault == fault
