"""Watches one scheduler: its answers go to intake, and a scheduler that cannot be read becomes unknown facts.

supervisor.add("watch:east", lambda lease: watch_scheduler(store, "east", scheduler, lease))
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock, every
from daytwo.domain.seams import NodeFacts, Scheduler
from daytwo.intake import facts_unknown, observe_facts
from daytwo.store.engine import Store

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0
UNKNOWN_AFTER_SECONDS: Final = 60.0
"""A failover of slurmctld takes less; what is older than this is no longer known."""
READ_SECONDS: Final = 30.0


async def watch_scheduler(
    store: Store,
    cluster: str,
    scheduler: Scheduler,
    lease: Lease,
    *,
    poll_seconds: float = POLL_SECONDS,
    unknown_after_seconds: float = UNKNOWN_AFTER_SECONDS,
    clock: Clock | None = None,
) -> None:
    """Look every few seconds, for ever. Raises `LeaseLost`."""
    clock = clock or Clock()
    watch = Watch(store, cluster, scheduler, lease, unknown_after_seconds=unknown_after_seconds, clock=clock)
    await every(poll_seconds, watch.step, clock=clock)


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
        self._failing_since: datetime | None = None
        self._said = ""

    async def step(self) -> tuple[str, ...]:
        """Look once; return the nodes of which anything changed. Raises `LeaseLost`."""
        asked = self._clock.now()
        try:
            async with asyncio.timeout(READ_SECONDS):
                facts = await self._scheduler.facts()
        # Whatever goes wrong while reading, the answer is unknown: a crash here would hide for how long.
        except Exception as error:
            return await self._on_error(error, asked)
        return await self._on_facts(facts)

    async def _on_facts(self, facts: Sequence[NodeFacts]) -> tuple[str, ...]:
        if self._failing_since is not None:
            log.info("%s: the scheduler answers again", self._cluster)
        self._failing_since, self._said = None, ""
        return await asyncio.to_thread(
            observe_facts, self._store, self._cluster, facts, now=self._clock.now(), guard=self._guard
        )

    async def _on_error(self, error: Exception, asked: datetime) -> tuple[str, ...]:
        self._failing_since = self._failing_since or asked
        said = f"{type(error).__name__}: {error}"
        if said != self._said:
            log.warning("%s: the scheduler cannot be read: %s", self._cluster, said)
            self._said = said
        now = self._clock.now()
        if (now - self._failing_since).total_seconds() < self._limit:
            return ()
        changed = await asyncio.to_thread(facts_unknown, self._store, self._cluster, now=now, guard=self._guard)
        if changed:
            log.error("%s: facts of %d nodes are unknown now", self._cluster, len(changed))
        return changed
