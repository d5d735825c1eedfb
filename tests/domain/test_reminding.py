"""When people are told again of what nobody has answered, and who is told."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from daytwo.domain.policy import Approval, Policy, Reminders
from daytwo.domain.reminding import groups_told, seconds_until_next
from daytwo.domain.vocabulary import Severity

CRITICAL, DEGRADED, COSMETIC = Severity.CRITICAL, Severity.DEGRADED, Severity.COSMETIC
DAY = 24 * 3600


@pytest.mark.parametrize(
    ("severity", "minutes"),
    [(CRITICAL, [5, 10, 70, 130]), (DEGRADED, [1440, 2880]), (COSMETIC, [7 * 1440, 14 * 1440])],
)
def test_people_are_told_again_at_these_minutes(severity: Severity, minutes: list[int]) -> None:
    waits = [seconds_until_next(Policy(), severity, told) / 60 for told in range(len(minutes))]
    assert [sum(waits[: number + 1]) for number in range(len(waits))] == minutes


@pytest.mark.parametrize(
    ("severity", "told"),
    [
        (CRITICAL, [("day",), ("day",), ("night",), ("day", "night", "all")]),
        (DEGRADED, [("day",)] * 4),
        (COSMETIC, [("day",)] * 4),
    ],
)
def test_a_critical_proposal_goes_to_the_next_group_and_then_to_all(severity: Severity, told: list[object]) -> None:
    policy = Policy(approval=Approval(groups=("day", "night", "all")))
    assert [groups_told(policy, severity, reminder) for reminder in range(4)] == told


def test_where_there_is_one_group_it_is_told_each_time() -> None:
    policy = Policy(approval=Approval(groups=("all",)))
    assert [groups_told(policy, CRITICAL, reminder) for reminder in range(3)] == [("all",)] * 3


def test_the_next_group_is_told_after_the_first_reminder() -> None:
    with pytest.raises(ValidationError, match="later than the first reminder"):
        Reminders(critical_seconds=600, next_group_seconds=600)
