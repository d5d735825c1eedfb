"""Whether anybody has committed: a loop may ask this far more often than it could read rows. Used by the controller."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Final

from sqlalchemy import Connection, text

from daytwo.domain.errors import TryAgain
from daytwo.store.engine import Store
from daytwo.store.patient import alone

ASK_SECONDS: Final = 0.01
ASK_ANEW_SECONDS: Final = 0.05
ANSWER_SECONDS: Final = 2.0
_SNAPSHOT: Final = text("SELECT pg_current_snapshot()::text")
"""Names the transactions that may be seen. It changes when one that has written ends, and not for one that has read."""


class Commits:
    """Notices the commits of others from now on, sometimes one too many. `pause_seconds` is for between two questions.

    SQLite counts commits and answers in microseconds. PostgreSQL is asked for its snapshot, which also moves with the
    writes of other databases of the server.
    """

    def __init__(self, store: Store, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._store = store
        self._answer_seconds = answer_seconds
        path = store.engine.url.database if store.engine.dialect.name == "sqlite" else None
        self._sqlite = sqlite3.connect(path, check_same_thread=False) if path else None
        self._postgresql: Connection | None = None
        self._seen: object = None
        self.pause_seconds = ASK_SECONDS if path else ASK_ANEW_SECONDS
        if self._sqlite is not None:
            self._seen = self._count(self._sqlite)

    async def any_new(self) -> bool:
        """Whether there was a commit since the last question. Says yes where that cannot be told."""
        if self._sqlite is not None:
            before, self._seen = self._seen, self._count(self._sqlite)
            return self._seen != before
        return await asyncio.to_thread(self._ask)

    def close(self) -> None:
        """Give the connection back."""
        if self._sqlite is not None:
            self._sqlite.close()
        self._hang_up()

    def _count(self, connection: sqlite3.Connection) -> int:
        found: int = connection.execute("PRAGMA data_version").fetchone()[0]
        return found

    def _ask(self) -> bool:
        try:
            now = self._snapshot()
        except TryAgain:
            # Whoever looks now finds out for itself that the store is away.
            self._hang_up()
            return True
        before, self._seen = self._seen, now
        return now != before

    def _snapshot(self) -> str:
        with self._store.failing_well():
            if self._postgresql is None:
                self._postgresql = _line_of_its_own(self._store, self._answer_seconds)
            return str(self._postgresql.execute(_SNAPSHOT).scalar_one())

    def _hang_up(self) -> None:
        if self._postgresql is not None:
            self._postgresql.close()
        self._postgresql = None


def _line_of_its_own(store: Store, answer_seconds: float) -> Connection:
    connection = store.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    alone(connection, answer_seconds)
    return connection
