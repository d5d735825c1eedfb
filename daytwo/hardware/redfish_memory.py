"""What the Redfish driver must know beyond one BMC: who refused us, and what the node's agent said last.

Kept in the store, because an account is locked out by a counter that no restart of ours resets (operations rule 17).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from sqlmodel import Session, col, delete, select

from daytwo.domain.errors import NotYet, Refused
from daytwo.store.engine import Store
from daytwo.store.tables import BmcRefusalRow, NodeRow

PAUSE: Final = timedelta(minutes=30)
"""Between two tries at a BMC that refused the login."""
TRIES: Final = 3
WINDOW: Final = timedelta(days=1)
"""`TRIES` refusals in this time, and nobody tries again by themselves."""
MANY: Final = 3
"""So many BMCs refuse the login: it is the password, not a BMC."""


class Heard(NamedTuple):
    """The boot that the node's agent last spoke from, and when."""

    boot_id: str | None
    at: datetime | None


class Memory:
    """One cluster's. `declared_at`: refusals before its definition was last applied are forgotten. Blocking."""

    def __init__(
        self, store: Store, cluster: str, declared_at: datetime, *, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._store, self._cluster, self._declared_at = store, cluster, declared_at
        self.now = clock or (lambda: datetime.now(UTC))

    def heard(self, node: str) -> Heard:
        """What was heard of the node; nothing for one that never spoke."""
        with self._store.read() as session:
            row = session.get(NodeRow, (self._cluster, node))
        return Heard(row.boot_id, row.last_heard_at) if row else Heard(None, None)

    def check(self, address: str) -> None:
        """Raise `NotYet` during a pause or while many BMCs refuse us, `Refused` when the day's tries are used up."""
        with self._store.read() as session:
            refusals = self._refusals(session)
        here = [row.at for row in refusals if row.address == address]
        again = "apply the definition again once user and password are right"
        if len(here) >= TRIES:
            raise Refused(f"{address}: refused the login {len(here)} times in a day; {again}")
        others = {row.address for row in refusals}
        if len(others) >= MANY:
            raise NotYet(f"{len(others)} BMCs refuse the login: was the password changed? No power act; {again}", 60.0)
        if here and (left := max(here) + PAUSE - self.now()) > timedelta(0):
            raise NotYet(
                f"{address}: refused the login, try {len(here)} of {TRIES} a day; next in {left.seconds // 60 + 1} min",
                min(left.total_seconds(), 60.0),
            )

    def refused(self, address: str) -> None:
        """Remember that the BMC refused the login."""
        with self._store.write() as session:
            session.add(BmcRefusalRow(cluster=self._cluster, address=address, at=self.now()))

    def accepted(self, address: str) -> None:
        """Forget the refusals of a BMC that lets us in. Writes only where there are some."""
        theirs = (col(BmcRefusalRow.cluster) == self._cluster, col(BmcRefusalRow.address) == address)
        with self._store.read() as session:
            if session.exec(select(BmcRefusalRow).where(*theirs)).first() is None:
                return
        with self._store.write() as session:
            session.exec(delete(BmcRefusalRow).where(*theirs))

    def _refusals(self, session: Session) -> list[BmcRefusalRow]:
        since = max(self._declared_at, self.now() - WINDOW)
        recent = (col(BmcRefusalRow.cluster) == self._cluster, col(BmcRefusalRow.at) > since)
        return list(session.exec(select(BmcRefusalRow).where(*recent)))
