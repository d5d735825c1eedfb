"""Watches Temporal and the control workers: a plane that repairs nothing would not notice that they are away."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from daytwo import outages as parts
from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock, every
from daytwo.domain.errors import NotFound, Unreachable
from daytwo.outages import Outages
from daytwo.temporal import Repairs

STEP_SECONDS: Final = 5.0
POLLED_WITHIN: Final = timedelta(seconds=90)
"""A worker asks again each minute, while it has nothing to do."""


async def watch_temporal(temporal: Repairs, outages: Outages, lease: Lease, *, clock: Clock | None = None) -> None:
    """Look every few seconds, for ever. Raises `LeaseLost`."""
    clock = clock or Clock()
    await every(STEP_SECONDS, TemporalWatch(temporal, outages, clock=clock).step, clock=clock, lease=lease)


class TemporalWatch:
    """Asks when a worker last asked for work: one question for both."""

    def __init__(self, temporal: Repairs, outages: Outages, *, clock: Clock) -> None:
        self._temporal = temporal
        self._outages = outages
        self._clock = clock

    async def step(self) -> None:
        """Look once."""
        asked = self._clock.now()
        try:
            polled_at = await self._temporal.polled_at()
        except (Unreachable, NotFound) as error:
            await self._outages.bad(parts.TEMPORAL, str(error), since=asked)
            return
        await self._outages.good(parts.TEMPORAL)
        if polled_at is not None and self._clock.now() - polled_at < POLLED_WITHIN:
            await self._outages.good(parts.WORKER)
        else:
            await self._outages.bad(parts.WORKER, "no control worker asks Temporal for work", since=polled_at)
