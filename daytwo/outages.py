"""Which parts answer and which are away, written down by those who talk to them; nobody asks a part only to know.

    outages = Outages(store, "worker")
    async with outages.watching(bmc_of("east", "gpu-07")):
        await driver.baseline(act)              an `Unreachable` or `UnknownAnswer` is noted, and goes on to the caller

Only changes are written, so a plane in which everything answers writes nothing. `daytwo status` reads the rows, and
limits of repairs leave out the time in which a part that they needed was away (`time_away`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from sqlmodel import Session, col, delete, select

from daytwo.domain.errors import TryAgain, UnknownAnswer, Unreachable
from daytwo.store.engine import Store
from daytwo.store.tables import OutageRow, PartRow

log = logging.getLogger(__name__)

TEMPORAL: Final = "temporal"
WORKER: Final = "worker"
NOTIFIER: Final = "notifier"
STORE: Final = "store"
GATEWAY: Final = "gateway"
RECONCILER: Final = "loop/reconcile"
"""The time in which no controller ran; written by the one that takes over (`daytwo.controller.leases`)."""

TRIED_EVERY: Final = timedelta(seconds=15)
"""While a part is away, its row is written at most this often."""
SURE_FOR: Final = timedelta(seconds=30)
"""A part that answers is looked up this often: another process may have found it away meanwhile."""
STAYS_AWAY: Final = timedelta(seconds=30)
"""One that answers for less than this between two failures was not back."""
BELIEVED_FOR: Final = timedelta(seconds=60)
"""Nobody knows whether a part is still away so long after it was last tried: from then on time counts again."""
KEPT: Final = timedelta(days=30)


def scheduler_of(cluster: str) -> str:
    """The part that is a cluster's scheduler."""
    return f"scheduler/{cluster}"


def bmc_of(cluster: str, node: str) -> str:
    """The part that is the BMC (or another driver's way to the hardware) of a node."""
    return f"bmc/{cluster}/{node}"


@dataclass(slots=True)
class _Known:
    """What this process knows of a part; `written` is when its row was written or looked up last."""

    away: bool
    written: datetime
    last_good: datetime | None = None
    error: str = ""


class Outages:
    """Notes what answers. `seen_by` is the kind of process: `controller`, `worker`. May be used by many threads."""

    def __init__(
        self,
        store: Store,
        seen_by: str,
        *,
        guard: Callable[[Session], None] | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._store = store
        self._seen_by = seen_by
        self._guard = guard
        self._now = now or (lambda: datetime.now(UTC))
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    @asynccontextmanager
    async def watching(self, part: str) -> AsyncIterator[None]:
        """Note whether the part answers what is asked of it in the block."""
        began = self._now()
        try:
            yield
        except (Unreachable, UnknownAnswer) as error:
            await self.bad(part, str(error), since=began)
            raise
        await self.good(part)

    async def good(self, part: str) -> None:
        """It answered. Raises nothing but what the guard does."""
        now = self._now()
        with self._lock:
            known = self._known.get(part)
            if known is not None:
                known.last_good = now
            sure = known is not None and not known.away and now - known.written < SURE_FOR
        if not sure and not await self._is_well(part, now):
            await self._write(part, lambda session: self._back(session, part, now), _Known(False, now, now))

    async def _is_well(self, part: str, now: datetime) -> bool:
        """Whether its row says so already: then nothing is written."""
        try:
            row = await asyncio.to_thread(self._row, part)
        except TryAgain as error:
            log.info("%s: not looked up: %s", part, error)
            return True
        if row is None or row.away:
            return False
        with self._lock:
            self._known[part] = _Known(False, now, now)
        return True

    def _row(self, part: str) -> PartRow | None:
        with self._store.read() as session:
            return session.get(PartRow, (part, self._seen_by))

    async def bad(self, part: str, error: str, *, since: datetime | None = None) -> None:
        """It did not answer, or nothing that can be read, to what was asked at `since`. Raises as `good` does."""
        now = self._now()
        with self._lock:
            known = self._known.get(part)
        if known is not None and known.away and known.error == error and now - known.written < TRIED_EVERY:
            return
        last_good = known.last_good if known else None
        new = PartRow(
            part=part,
            seen_by=self._seen_by,
            away=True,
            since=since or now,
            error=error[:500],
            last_good=last_good,
            tried_at=now,
        )
        await self._write(part, lambda session: _away(session, new), _Known(True, now, last_good, error))

    async def _write(self, part: str, change: Callable[[Session], None], known: _Known) -> None:
        def guarded(session: Session) -> None:
            if self._guard:
                self._guard(session)
            change(session)

        try:
            await asyncio.to_thread(self._store.change, guarded)
        except TryAgain as error:
            log.info("%s: not noted that it %s: %s", part, "is away" if known.away else "answers", error)
            return
        with self._lock:
            before = self._known.get(part)
            self._known[part] = known
        if before is None or before.away != known.away:
            log.log(logging.WARNING if known.away else logging.INFO, "%s %s", part, known.error or "answers")

    def _back(self, session: Session, part: str, now: datetime) -> None:
        row = session.get(PartRow, (part, self._seen_by), with_for_update=True)
        if row is None:
            row = PartRow(part=part, seen_by=self._seen_by, since=now, tried_at=now)
        elif not row.away:
            return
        else:
            session.add(_over(row, now))
        row.away, row.since, row.error, row.last_good, row.tried_at = False, now, "", now, now
        session.add(row)


def _over(row: PartRow, now: datetime) -> OutageRow:
    return OutageRow(part=row.part, seen_by=row.seen_by, began=row.since, ended=now, error=row.error)


def _away(session: Session, new: PartRow) -> None:
    row = session.get(PartRow, (new.part, new.seen_by), with_for_update=True)
    if row is None:
        session.add(new)
        return
    if not row.away:
        row.away, row.last_good = True, new.last_good or row.last_good
        row.since = _still_away(session, new) or new.since
    row.error, row.tried_at = new.error, new.tried_at
    session.add(row)


def _still_away(session: Session, new: PartRow) -> datetime | None:
    """Since when, if it was back for a moment only. What is too old is forgotten here, where it is rare."""
    session.exec(delete(OutageRow).where(col(OutageRow.ended) < new.tried_at - KEPT))
    same = (OutageRow.part == new.part, OutageRow.seen_by == new.seen_by)
    last = session.exec(
        select(OutageRow).where(*same, col(OutageRow.ended) > new.tried_at - STAYS_AWAY).with_for_update()
    ).first()
    if last is None:
        return None
    session.delete(last)
    return last.began


class Away(NamedTuple):
    """How long parts were away in some time, and which of them still are: the part, and since when."""

    seconds: float
    still: dict[str, datetime]

    def __str__(self) -> str:
        names = [f"{part} away since {since:%H:%M:%SZ}" for part, since in sorted(self.still.items())]
        return ", ".join(names) or f"{self.seconds:.0f} s in which a part did not answer"


Interval = tuple[datetime, datetime]


def time_away(
    session: Session, parts: Collection[str], *, since: datetime, now: datetime, also: Collection[Interval] = ()
) -> Away:
    """How much of the time from `since` to `now` any of these parts was away. `also`: other times that do not count."""
    over = select(OutageRow.began, OutageRow.ended).where(col(OutageRow.part).in_(parts), OutageRow.ended > since)
    times = [(max(began, since), min(ended, now)) for began, ended in (*session.exec(over), *also)]
    still: dict[str, datetime] = {}
    for row in session.exec(select(PartRow).where(col(PartRow.part).in_(parts), col(PartRow.away).is_(True))):
        times.append((max(row.since, since), min(now, row.tried_at + BELIEVED_FOR)))
        if row.tried_at + BELIEVED_FOR >= now:
            still[row.part] = min(row.since, still.get(row.part, row.since))
    return Away(_together(times), still)


def _together(times: Iterable[Interval]) -> float:
    """Seconds that are covered by any of these times."""
    seconds, reached = 0.0, None
    for began, ended in sorted(times):
        start = began if reached is None else max(began, reached)
        if ended > start:
            seconds += (ended - start).total_seconds()
            reached = ended
    return seconds
