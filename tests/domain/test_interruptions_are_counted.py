"""How often running work may be interrupted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from daytwo.domain.interruptions import Interruption, too_many
from daytwo.domain.policy import Budget

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
MINUTES, HOURS = timedelta(minutes=1), timedelta(hours=1)


def past(*jobs: tuple[str, timedelta]) -> list[Interruption]:
    return [Interruption(job, NOW - ago) for job, ago in jobs]


@pytest.mark.parametrize(
    ("jobs", "before", "says"),
    [
        ({"7"}, past(), ""),
        (
            {"7"},
            past(("7", 2 * HOURS)),
            "job 7 was interrupted already; the budget of a job allows 1 interruption in 24 h",
        ),
        ({"7"}, past(("7", 25 * HOURS)), ""),
        ({"7"}, past(("8", 2 * HOURS)), ""),
        ({"7"}, past(("1", MINUTES), ("2", MINUTES)), ""),
        ({"7"}, past(("1", MINUTES), ("2", MINUTES), ("3", MINUTES)), "3 jobs were interrupted within the last hour"),
        ({"7"}, past(("1", MINUTES), ("2", MINUTES), ("3", 61 * MINUTES)), ""),
        ({"7", "8"}, past(("1", MINUTES), ("2", MINUTES)), "2 jobs were interrupted within the last hour"),
        ({"4", "5", "6", "7"}, past(), ""),
        (set(), past(("1", MINUTES), ("2", MINUTES), ("3", MINUTES)), ""),
    ],
)
def test_so_many_jobs_are_interrupted_and_each_once_a_day(
    jobs: set[str], before: list[Interruption], says: str
) -> None:
    found = too_many(jobs, before, Budget(), NOW)
    assert (found[: len(says)], bool(found)) == (says, bool(says))
