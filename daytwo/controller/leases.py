"""Who runs a loop: a lease in the store. Its epoch goes into every write, so that whoever lost it changes nothing.

Time only decides when another may take a lease over; what is safe follows from the epoch alone, whatever the clocks of
two machines say. An end that lies far ahead was written by a clock that is ahead of ours: whoever waits for the lease
counts by a clock of its own for how long nobody has renewed it (`Sight`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, col, select, update

from daytwo.domain.errors import Stale
from daytwo.store.engine import Store
from daytwo.store.tables import LeaseRow, OutageRow


class LeaseLost(Stale):
    """Somebody else runs this loop now; what was about to be written is not."""


GAP: Final = timedelta(seconds=5)
"""A loop that nobody ran for longer was away: the time is written down by the one that takes over."""


@dataclass(slots=True)
class Beat:
    """When a loop last ended a step; the next renewal writes it."""

    at: datetime | None = None


@dataclass(slots=True)
class Sight:
    """A lease of somebody else as this process has seen it: unchanged since `since`, by its own monotonic clock."""

    monotonic: Callable[[], float] = time.monotonic
    seen: tuple[int, datetime] | None = None
    since: float = 0.0

    def is_abandoned(self, epoch: int, expires_at: datetime, seconds: float) -> bool:
        """True once it has not been renewed for so long as we look at it."""
        if self.seen != (epoch, expires_at):
            self.seen, self.since = (epoch, expires_at), self.monotonic()
        return self.monotonic() - self.since >= seconds


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one loop. `epoch` is higher than that of every holder before."""

    name: str
    holder: str
    epoch: int
    beat: Beat = field(default_factory=Beat, compare=False)

    @property
    def guard(self) -> Callable[[Session], None]:
        """What a loop hands to everything that writes for it."""
        return lambda session: guarded(session, self)


def acquire(
    store: Store, name: str, holder: str, *, now: datetime, seconds: float, sight: Sight | None = None
) -> Lease | None:
    """Take the lease for so long, if nobody holds it; `None` while somebody does.

    With a `sight`, which is kept from try to try, it is taken too from a holder that renews it no more.
    """

    def take(session: Session) -> Lease | None:
        row = session.get(LeaseRow, name, with_for_update=True)
        if row is None:
            row = LeaseRow(name=name, holder=holder, epoch=0, expires_at=now)
        elif row.holder != holder and row.expires_at > now and not _is_abandoned(row, sight, seconds):
            return None
        elif now - row.expires_at > GAP:
            session.add(_gap(row, now))
        row.holder, row.epoch, row.expires_at = holder, row.epoch + 1, now + timedelta(seconds=seconds)
        session.add(row)
        return Lease(name, holder, row.epoch)

    return store.change(take)


def _is_abandoned(row: LeaseRow, sight: Sight | None, seconds: float) -> bool:
    return sight is not None and sight.is_abandoned(row.epoch, row.expires_at, seconds)


def renew(store: Store, lease: Lease, *, now: datetime, seconds: float) -> None:
    """Hold the lease for so long from now. Raises `LeaseLost`."""
    with store.write() as session:
        guarded(session, lease)
        _set_end(session, lease, now + timedelta(seconds=seconds), stepped_at=lease.beat.at)


def release(store: Store, lease: Lease, *, now: datetime) -> None:
    """Let the next holder begin at once. A lease that is lost already stays with whoever has it."""
    with store.write() as session:
        _set_end(session, lease, now)


def guarded(session: Session, lease: Lease) -> None:
    """Raise `LeaseLost` unless the lease is still this one; until the transaction ends, nobody can take it.

    The holder's own writes do not wait for each other, nor does its renewal wait for them.
    """
    query = select(LeaseRow.epoch).where(LeaseRow.name == lease.name).with_for_update(read=True, key_share=True)
    epoch = session.exec(query).first()
    if epoch != lease.epoch:
        raise LeaseLost(f"loop {lease.name}: {lease.holder} had epoch {lease.epoch}, now it is {epoch}")


def _set_end(session: Session, lease: Lease, end: datetime, *, stepped_at: datetime | None = None) -> None:
    mine = (col(LeaseRow.name) == lease.name, col(LeaseRow.epoch) == lease.epoch)
    values = {"expires_at": end, **({"stepped_at": stepped_at} if stepped_at else {})}
    session.exec(update(LeaseRow).where(*mine).values(values))


def _gap(row: LeaseRow, now: datetime) -> OutageRow:
    part = f"loop/{row.name}"
    return OutageRow(part=part, seen_by="controller", began=row.expires_at, ended=now, error="no controller ran it")
