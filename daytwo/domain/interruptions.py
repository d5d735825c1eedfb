"""How often running work may be interrupted. Used by the activity `take-right`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from daytwo.domain.policy import Budget

HOUR: Final = timedelta(hours=1)


class Interruption(NamedTuple):
    """A requeue of a running job that was sent, or may have been."""

    job: str
    at: datetime


def too_many(jobs: Collection[str], past: Sequence[Interruption], budget: Budget, now: datetime) -> str:
    """Why these jobs may not be requeued now, or an empty string. Where there is none to requeue nothing is in the way.

    Source: operations 3 (budget).
    """
    apart = timedelta(seconds=budget.interruption_apart_seconds)
    again = sorted({each.job for each in past if each.job in jobs and now - each.at < apart})
    if again:
        hours = f"{budget.interruption_apart_seconds / 3600:g} h"
        return f"job {again[0]} was interrupted already; the budget of a job allows 1 interruption in {hours}"
    lately = sum(now - each.at < HOUR for each in past)
    if jobs and lately + len(jobs) > max(budget.interruptions_per_hour, len(jobs)):
        allowed = budget.interruptions_per_hour
        return f"{lately} jobs were interrupted within the last hour; the budget of the cluster allows {allowed}"
    return ""
