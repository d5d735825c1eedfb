"""What the store says of all open repairs, read again and again, for whoever waits for a state or strikes in it."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Final, NamedTuple

from sqlmodel import col, select

from daytwo.domain.errors import DaytwoError
from daytwo.domain.repair_states import TERMINAL
from daytwo.store.engine import Store
from daytwo.store.tables import RepairRow

PAUSE_SECONDS: Final = 0.01
"""`approved` and `quarantining` last for some 30 ms."""


class Open(NamedTuple):
    """One open repair."""

    repair: str
    state: str
    revision: int


class Watch:
    """The open repairs by node, a few milliseconds old; a store that does not answer leaves them as they were."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.open: dict[str, Open] = {}

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(DaytwoError):
                self.open = self._read()
            time.sleep(PAUSE_SECONDS)

    def _read(self) -> dict[str, Open]:
        wanted = select(RepairRow.node, RepairRow.id, RepairRow.state, RepairRow.revision)
        with self._store.read() as session:
            rows = session.exec(wanted.where(col(RepairRow.open_key).is_not(None))).all()
        return {node: Open(repair, state, revision) for node, repair, state, revision in rows}

    def ended(self, repair: str) -> str | None:
        """The terminal state of a repair; `None` while it is open or the store does not answer."""
        with contextlib.suppress(DaytwoError), self._store.read() as session:
            row = session.get(RepairRow, repair)
            return row.state if row is not None and row.state in TERMINAL else None
        return None
