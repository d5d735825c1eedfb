"""Whether anybody has committed: a loop may ask this far more often than it could read rows. Used by the controller."""

from __future__ import annotations

import sqlite3
from typing import Final

from daytwo.store.engine import Store

ASK_SECONDS: Final = 0.01
ASK_ANEW_SECONDS: Final = 0.05


class Commits:
    """Notices the commits of others from now on. SQLite counts them, and answers in microseconds.

    A database that does not count always says that somebody has. `pause_seconds` is how long to wait between questions.
    """

    def __init__(self, store: Store) -> None:
        path = store.engine.url.database if store.engine.dialect.name == "sqlite" else None
        self._connection = sqlite3.connect(path, check_same_thread=False) if path else None
        self._seen = self._count()
        self.pause_seconds = ASK_SECONDS if path else ASK_ANEW_SECONDS

    def any_new(self) -> bool:
        """Whether there was a commit since the last question."""
        before, self._seen = self._seen, self._count()
        return self._connection is None or self._seen != before

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()

    def _count(self) -> int:
        if self._connection is None:
            return 0
        found: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return found
