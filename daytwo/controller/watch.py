"""Watches one scheduler: its answers go to intake, and a scheduler that cannot be read becomes unknown facts.

`daytwo.controller.clusters` runs one for each cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from daytwo.backoff import Backoff
from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock
from daytwo.domain.seams import NodeFacts, Scheduler
from daytwo.intake import facts_unknown, observe_facts
from daytwo.outages import Outages, scheduler_of
from daytwo.store.engine import Store

log = logging.getLogger(__name__)

UNKNOWN_AFTER_SECONDS: Final = 60.0
"""A failover of slurmctld takes less; what is older than this is no longer known."""
READ_SECONDS: Final = 30.0
FIRST_AGAIN_SECONDS: Final = 1.0
LAST_AGAIN_SECONDS: Final = 15.0
"""Between two tries while it fails. A scheduler that comes back is seen within this."""


class Watch:
    """One scheduler as it is watched: since when it could not be read, and what was said of it."""

    def __init__(
        self,
        store: Store,
        cluster: str,
        scheduler: Scheduler,
        lease: Lease,
        *,
        unknown_after_seconds: float,
        clock: Clock,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._scheduler = scheduler
        self._guard = lease.guard
        self._limit = unknown_after_seconds
        self._clock = clock
        self._outages = Outages(store, "controller", guard=lease.guard, now=clock.now)
        self._backoff = Backoff(FIRST_AGAIN_SECONDS, LAST_AGAIN_SECONDS)
        self._not_before = clock.now()
        self._failing_since: datetime | None = None
        self._said = ""
        self._started: tuple[datetime, ...] = ()
        self._hears_all_at = clock.now()

    async def step(self) -> tuple[str, ...]:
        """Look once; return the nodes of which anything changed. Raises `LeaseLost`.

        A scheduler that fails is asked again after growing waits: until then nothing is done.
        """
        asked = self._clock.now()
        if asked < self._not_before:
            return ()
        try:
            async with asyncio.timeout(READ_SECONDS):
                facts = await self._scheduler.facts()
                started = await self._scheduler.started_at()
                if started not in self._started[:1]:
                    self._hears_all_at = await self._when_it_hears_all(started)
        # Whatever goes wrong while reading, the answer is unknown: a crash here would hide for how long.
        except Exception as error:
            return await self._on_error(error, asked)
        return await self._on_facts(facts, self._restarted(started))

    def _restarted(self, started: datetime) -> bool | None:
        """True in the answer after a restart, and in the next: it may come between what one look reads.

        `None` is not known: this is the first answer.
        """
        before, self._started = self._started, (started, *self._started[:1])
        if not before:
            return None
        return any(each != started for each in before)

    async def _when_it_hears_all(self, started: datetime) -> datetime:
        """Until when a scheduler that has just been started cannot know which nodes are silent.

        Its own clock is believed only for a start that was not seen from here.
        """
        now = self._clock.now()
        since = now if self._started else min(started, now)
        return since + timedelta(seconds=await self._scheduler.late_after_seconds())

    async def _on_facts(self, facts: Sequence[NodeFacts], restarted: bool | None) -> tuple[str, ...]:
        if self._failing_since is not None:
            log.info("%s: the scheduler answers again", self._cluster)
        self._failing_since, self._said = None, ""
        self._backoff.reset()
        now = self._clock.now()
        await self._outages.good(scheduler_of(self._cluster))
        return await asyncio.to_thread(
            observe_facts,
            self._store,
            self._cluster,
            facts,
            now=now,
            guard=self._guard,
            restarted=restarted,
            hears_all=now >= self._hears_all_at,
        )

    async def _on_error(self, error: Exception, asked: datetime) -> tuple[str, ...]:
        self._failing_since = self._failing_since or asked
        said = f"{type(error).__name__}: {error}"
        if said != self._said:
            log.warning("%s: the scheduler cannot be read: %s", self._cluster, said)
            self._said = said
        await self._outages.bad(scheduler_of(self._cluster), said, since=self._failing_since)
        now = self._clock.now()
        self._not_before = now + timedelta(seconds=self._backoff.next())
        if (now - self._failing_since).total_seconds() < self._limit:
            return ()
        changed = await asyncio.to_thread(facts_unknown, self._store, self._cluster, now=now, guard=self._guard)
        if changed:
            log.error("%s: facts of %d nodes are unknown now", self._cluster, len(changed))
        return changed
