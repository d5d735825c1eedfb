"""Adapters of which it is written down whether their other side answers (`daytwo.outages`). `daytwo.adapters` wraps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from daytwo.domain.seams import Act, ActKind, Hardware, Look, NodeFacts, Preparation, Recorded, Scheduler, Target
from daytwo.domain.vocabulary import Workload
from daytwo.outages import Outages


class NotedTarget:
    """A `Target`: what is asked of it is noted under one part's name."""

    def __init__(self, target: Target, outages: Outages, part: str) -> None:
        self._target = target
        self._outages = outages
        self._part = part
        self.settle_seconds = target.settle_seconds

    async def prepare(self, act: Act) -> Preparation:
        """As the target does."""
        async with self._outages.watching(self._part):
            return await self._target.prepare(act)

    async def look(self, act: Act) -> Look:
        """As the target does."""
        async with self._outages.watching(self._part):
            return await self._target.look(act)


class NotedScheduler(NotedTarget):
    """A `Scheduler`."""

    def __init__(self, scheduler: Scheduler, outages: Outages, part: str) -> None:
        super().__init__(scheduler, outages, part)
        self._scheduler = scheduler
        self.quarantine_acts = scheduler.quarantine_acts
        self.release_acts = scheduler.release_acts
        self.interrupt_acts = scheduler.interrupt_acts

    async def facts(self) -> tuple[NodeFacts, ...]:
        """As the scheduler does."""
        async with self._outages.watching(self._part):
            return await self._scheduler.facts()

    async def node(self, node: str) -> NodeFacts:
        """As the scheduler does."""
        async with self._outages.watching(self._part):
            return await self._scheduler.node(node)

    async def started_at(self) -> datetime:
        """As the scheduler does."""
        async with self._outages.watching(self._part):
            return await self._scheduler.started_at()

    async def late_after_seconds(self) -> float:
        """As the scheduler does."""
        async with self._outages.watching(self._part):
            return await self._scheduler.late_after_seconds()

    async def recorded(self, node: str, since: datetime) -> tuple[Recorded, ...]:
        """As the scheduler does. Accounts that are away are no outage: nothing waits for them."""
        return await self._scheduler.recorded(node, since)

    async def workloads(self, nodes: Sequence[str]) -> tuple[Workload, ...]:
        """As the scheduler does."""
        async with self._outages.watching(self._part):
            return await self._scheduler.workloads(nodes)


class NotedHardware(NotedTarget):
    """A `Hardware` driver."""

    def __init__(self, hardware: Hardware, outages: Outages, part: str) -> None:
        super().__init__(hardware, outages, part)
        self._hardware = hardware

    def capabilities(self) -> frozenset[ActKind]:
        """As the driver does."""
        return self._hardware.capabilities()

    async def baseline(self, act: Act) -> Act:
        """As the driver does."""
        async with self._outages.watching(self._part):
            return await self._hardware.baseline(act)
