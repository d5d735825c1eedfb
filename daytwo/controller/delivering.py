"""Brings decision rows to their repairs, with growing waits, until each has ended. Part of the reconciler."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final

from sqlmodel import select

from daytwo.backoff import spread
from daytwo.domain.errors import DaytwoError, NotFound
from daytwo.domain.vocabulary import Channel, DecisionStatus
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow
from daytwo.temporal import TemporalDelivery

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
REDELIVER_AFTER: Final = timedelta(seconds=2)
"""The service delivers at once; what is pending after this is brought again, each time after twice as long."""

AHEAD: Final = timedelta(seconds=30)


class Delivering:
    """What has been brought, and when it is brought again; `longest` is the longest wait."""

    def __init__(self, store: Store, delivery: TemporalDelivery, *, longest: timedelta) -> None:
        self._store = store
        self._delivery = delivery
        self._longest = longest
        self._hands = asyncio.Semaphore(AT_ONCE)
        self._brought: dict[str, tuple[datetime, timedelta]] = {}

    async def step(self, now: datetime) -> list[str]:
        """Bring everything that is due now; returns the decisions whose repair does not run in Temporal.

        One that is not taken delays no other for long.
        """
        due = await asyncio.to_thread(self._due, now)
        runs = await asyncio.gather(*(self._bring(decision_id) for decision_id in due))
        return [decision_id for decision_id, runs_there in zip(due, runs, strict=True) if not runs_there]

    async def _bring(self, decision_id: str) -> bool:
        """Bring one; `False` if Temporal says that there is nobody to take it."""
        async with self._hands:
            try:
                await self._delivery.deliver(decision_id)
            except DaytwoError as error:
                log.info("decision %s is not delivered yet: %s", decision_id, error)
                return not isinstance(error, NotFound)
        return True

    def forget_times(self) -> None:
        """The clock was put back: everything pending is brought again."""
        self._brought.clear()

    def _due(self, now: datetime) -> list[str]:
        """Pending decisions that the service has not brought over at once. A policy's own are brought at once."""
        with self._store.read() as session:
            rows = session.exec(select(DecisionRow).where(DecisionRow.status == DecisionStatus.PENDING)).all()
        pending = {row.id: row.at if row.channel == Channel.POLICY else row.at + REDELIVER_AFTER for row in rows}
        # Written by a clock that was ahead: what stops an act must not wait for it.
        pending = {ident: min(at, now) if at > now + AHEAD else at for ident, at in pending.items()}
        self._brought = {ident: told for ident, told in self._brought.items() if ident in pending}
        return [ident for ident, at in pending.items() if self._is_due(ident, at, now)]

    def _is_due(self, decision_id: str, at: datetime, now: datetime) -> bool:
        last, wait = self._brought.get(decision_id, (at, timedelta(0)))
        if now < last + wait:
            return False
        wait = min(2 * wait or REDELIVER_AFTER, self._longest)
        self._brought[decision_id] = now, timedelta(seconds=spread(wait.total_seconds()))
        return True
