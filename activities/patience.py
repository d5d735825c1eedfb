"""How long a step of a repair may take. The time in which it could not be done does not count, but is told.

That is the time in which its scheduler, its BMC, Temporal, the gateway or the plane itself did not answer, or it was
frozen: an outage makes repairs wait and not ask for help. Without an end it does: a limit exists for each.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlmodel import Session, col, select

from activities.world import World
from daytwo import outages
from daytwo.domain.errors import Failed, TryAgain
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.outages import Away, Interval
from daytwo.store.tables import FreezeRow

LONGEST_OUTAGE: Final = timedelta(hours=24)
"""Beyond its limit no step is waited for longer: whoever approved it expects something else by now."""
LONGEST_SILENCE: Final = timedelta(hours=1)
"""Of one BMC. One that does not answer for so long is no outage of the plane: it needs somebody's hands."""
WORTH_TELLING: Final = 30.0
"""Seconds."""


class Used(NamedTuple):
    """Seconds that count, and seconds in all, with what was away meanwhile."""

    seconds: float
    total: float
    away: Away


class Patience:
    """Judges whether a step is late."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def used(self, ref: RepairRef, since: datetime) -> Used:
        """How long a step has been tried for since then."""
        now = self._world.now()
        away = await self._world.read(lambda session: _away(session, ref, since, now))
        total = (now - since).total_seconds()
        return Used(max(0.0, total - away.seconds), total, away)

    async def is_late(self, arg: StepInput, limit_seconds: float) -> bool:
        """True when a step has had its time."""
        used = await self.used(arg.ref, arg.since)
        return used.seconds > limit_seconds or used.total > limit_seconds + LONGEST_OUTAGE.total_seconds()

    async def after(
        self, error: TryAgain, arg: StepInput, what: str, limit_seconds: float, *, since: datetime | None = None
    ) -> TryAgain:
        """Return the error that says what the step waits for. Raises `Failed` when it has had its time.

        `what` says what is not so yet: `reboot is not proven`.
        """
        used = await self.used(arg.ref, since or arg.since)
        if problem := _problem(used, arg.ref, what, limit_seconds, self._world.now()):
            raise Failed(f"{arg.ref.node}: {problem}: {error}{_not_counted(used)}") from error
        error.args = (f"{error}{_not_counted(used)}",)
        return error


def _problem(used: Used, ref: RepairRef, what: str, limit_seconds: float, now: datetime) -> str:
    if used.seconds > limit_seconds:
        return f"{what} after {limit_seconds:.0f} s"
    silent_since = used.away.still.get(outages.bmc_of(ref.cluster, ref.node))
    if silent_since is not None and now - silent_since > LONGEST_SILENCE:
        return f"{what}, and its BMC has not answered since {silent_since:%Y-%m-%d %H:%M:%SZ}"
    if used.total > limit_seconds + LONGEST_OUTAGE.total_seconds():
        return f"{what} after {timedelta(seconds=int(used.total))}, and that is long enough"
    return ""


def _not_counted(used: Used) -> str:
    if not used.away.still and used.away.seconds < WORTH_TELLING:
        return ""
    return f" ({used.away}: this time does not count)"


def _away(session: Session, ref: RepairRef, since: datetime, now: datetime) -> Away:
    parts = (
        outages.scheduler_of(ref.cluster),
        outages.bmc_of(ref.cluster, ref.node),
        outages.GATEWAY,
        outages.TEMPORAL,
        outages.WORKER,
        outages.RECONCILER,
    )
    return outages.time_away(session, parts, since=since, now=now, also=_frozen(session, ref, since, now))


def _frozen(session: Session, ref: RepairRef, since: datetime, now: datetime) -> list[Interval]:
    scopes = ("*", ref.cluster, f"{ref.cluster}/{ref.node}")
    query = select(FreezeRow.at, FreezeRow.thawed_at).where(col(FreezeRow.scope).in_(scopes))
    return [(at, thawed or now) for at, thawed in session.exec(query) if (thawed or now) > since]
