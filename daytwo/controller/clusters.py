"""Watches the scheduler of every declared cluster; one that is declared later is watched from then on."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Final

from sqlmodel import select

from daytwo.adapters import Adapters
from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock, every
from daytwo.controller.watch import UNKNOWN_AFTER_SECONDS, Watch
from daytwo.domain.errors import BadInput
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 2.0
"""A drain by another's hand is seen within this. slurmctld answers for 5,000 nodes in 50 ms (slurm-lab.md 5)."""


async def watch_clusters(store: Store, adapters: Adapters, lease: Lease, *, clock: Clock | None = None) -> None:
    """Look at every cluster every few seconds, for ever. Raises `LeaseLost`."""
    clock = clock or Clock()
    watch = ClusterWatch(store, adapters, lease, clock=clock)
    try:
        await every(POLL_SECONDS, watch.step, clock=clock, lease=lease)
    finally:
        await watch.stop()


class ClusterWatch:
    """One watch a cluster, kept until its definition changes."""

    def __init__(self, store: Store, adapters: Adapters, lease: Lease, *, clock: Clock) -> None:
        self._store = store
        self._adapters = adapters
        self._lease = lease
        self._clock = clock
        self._watches: dict[str, tuple[datetime, Watch]] = {}
        self._looking: dict[Watch, asyncio.Task[object]] = {}

    async def step(self) -> None:
        """Look once at all of them, side by side; one that hangs delays nobody's next look. Raises `LeaseLost`."""
        for watch in await asyncio.to_thread(self._current):
            if watch not in self._looking:
                self._looking[watch] = asyncio.create_task(watch.step())
        if self._looking:
            await asyncio.wait(self._looking.values(), timeout=POLL_SECONDS)
        for watch, task in list(self._looking.items()):
            if task.done():
                del self._looking[watch]
                task.result()

    async def stop(self) -> None:
        """End the looks that are under way."""
        for task in self._looking.values():
            task.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)

    def _current(self) -> list[Watch]:
        with self._store.read() as session:
            rows = session.exec(select(ClusterRow.name, ClusterRow.updated_at)).all()
        for name, updated_at in rows:
            if name not in self._watches or self._watches[name][0] != updated_at:
                self._add(name, updated_at)
        return [self._watches[name][1] for name, _ in rows if name in self._watches]

    def _add(self, name: str, updated_at: datetime) -> None:
        try:
            scheduler = self._adapters.cluster(name).scheduler
        except BadInput as error:
            log.error("%s", error)
            return
        limit = UNKNOWN_AFTER_SECONDS
        watch = Watch(self._store, name, scheduler, self._lease, unknown_after_seconds=limit, clock=self._clock)
        self._watches[name] = (updated_at, watch)
