"""The status within a second, also while the store hangs: then that is the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from daytwo.domain.errors import DaytwoError
from daytwo.service import reads
from daytwo.service.models.status import Status
from daytwo.store.engine import Store

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 0.8


class StatusReader:
    """Reads the status. However many ask, a store that hangs holds one thread. `started`: when the service was."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        patience_seconds: float = PATIENCE_SECONDS,
        *,
        started: datetime | None = None,
    ) -> None:
        self._clock = clock
        self._started = started or clock()
        self._patience = patience_seconds
        self._reading: asyncio.Task[Status] | None = None
        self._away_since: datetime | None = None

    async def read(self, store: Store) -> Status:
        """The status as it is now, or that the store is away, since when and why."""
        began = self._clock()
        if self._reading is None:
            self._reading = asyncio.create_task(asyncio.to_thread(_read, store, self._clock, self._started))
        reading = self._reading
        await asyncio.wait({reading}, timeout=self._patience)
        if not reading.done():
            return self._away(began, f"no answer within {self._patience:g} s")
        self._reading = None if self._reading is reading else self._reading
        error = reading.exception()
        if isinstance(error, DaytwoError):
            return self._away(began, str(error))
        self._away_since = None
        return reading.result()

    def _away(self, began: datetime, why: str) -> Status:
        if self._away_since is None:
            log.warning("the store does not answer: %s", why)
        self._away_since = self._away_since or began
        return reads.store_away(self._away_since, why, self._clock())


def _read(store: Store, clock: Callable[[], datetime], started: datetime) -> Status:
    with store.read() as session:
        return reads.status(session, clock(), started=started)
