"""Supervised loops: each runs in one controller at a time, comes back after a crash, and ends when it is told to.

supervisor = Supervisor(store, holder=holder_name())
supervisor.add("reconcile", reconcile)        async def reconcile(lease: Lease) -> None, which never returns
await supervisor.run(stop)
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import SystemRandom
from typing import Final, TypeVar

from daytwo.backoff import Backoff
from daytwo.controller.leases import Lease, LeaseLost, Sight, acquire, release, renew
from daytwo.domain.errors import DaytwoError
from daytwo.store.engine import Store

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 15.0
"""A controller that dies is followed after this long. Renewed three times within it."""
FIRST_RESTART: Final = 0.5
LAST_RESTART: Final = 30.0
SETTLED: Final = 60.0
"""A loop that ran for longer begins anew with a short pause."""

MOST_LOOPS: Final = 16

Loop = Callable[[Lease], Awaitable[None]]
Result = TypeVar("Result")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, and the waiting for it. `jitter` is a factor that keeps many from doing the same at once.

    `monotonic` counts seconds, whatever is done to the clock.
    """

    now: Callable[[], datetime] = _utc_now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = field(default=lambda: SystemRandom().uniform(0.8, 1.2))
    monotonic: Callable[[], float] = time.monotonic


def holder_name() -> str:
    """Return a name that no other process has, also after this one: host, process and a random part."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


async def every(seconds: float, step: Callable[[], Awaitable[object]], *, clock: Clock, lease: Lease) -> None:
    """Call `step` for ever, so many seconds after it ended; each end is a beat of the loop."""
    while True:
        await step()
        lease.beat.at = clock.now()
        await clock.sleep(seconds * clock.jitter())


class Supervisor:
    """Runs loops under leases until it is stopped."""

    def __init__(
        self, store: Store, *, holder: str, lease_seconds: float = LEASE_SECONDS, clock: Clock | None = None
    ) -> None:
        self._store = store
        self._holder = holder
        self._seconds = lease_seconds
        self._clock = clock or Clock()
        self._loops: dict[str, Loop] = {}
        # Of their own: while the store stalls, the threads that all share are full of those who wait for it.
        self._threads = ThreadPoolExecutor(MOST_LOOPS, thread_name_prefix="lease")

    def add(self, name: str, loop: Loop) -> None:
        """Have `loop` run whenever this process can get the lease of that name."""
        self._loops[name] = loop

    async def run(self, stop: asyncio.Event) -> None:
        """Run all loops until `stop` is set; then end them and give their leases back."""
        tasks = [asyncio.create_task(self._keep(name, loop), name=name) for name, loop in self._loops.items()]
        try:
            await stop.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._threads.shutdown(wait=False)

    async def _keep(self, name: str, loop: Loop) -> None:
        backoff = Backoff(FIRST_RESTART, LAST_RESTART)
        while True:
            began = self._clock.now()
            try:
                await self._run_once(name, loop)
            except DaytwoError as error:
                log.warning("loop %s: %s", name, error)
            except asyncio.CancelledError:
                if _is_to_end():
                    raise
                log.exception("loop %s was cancelled from within", name)
            except Exception:
                log.exception("loop %s crashed", name)
            if (self._clock.now() - began).total_seconds() > SETTLED:
                backoff.reset()
            await self._clock.sleep(backoff.next())

    async def _run_once(self, name: str, loop: Loop) -> None:
        lease = await self._acquired(name)
        log.info("loop %s runs here, epoch %d", name, lease.epoch)
        running = asyncio.ensure_future(loop(lease))
        renewing = asyncio.create_task(self._renew(lease))
        try:
            done, _ = await asyncio.wait({running, renewing}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            log.error("loop %s ended by itself", name)
        finally:
            await _end(running, renewing)
            await self._released(lease)

    async def _acquired(self, name: str) -> Lease:
        sight = Sight(self._clock.monotonic)
        while True:
            lease = await self._aside(partial(self._acquire, name, sight))
            if lease is not None:
                return lease
            await self._clock.sleep(self._seconds / 3 * self._clock.jitter())

    async def _renew(self, lease: Lease) -> None:
        """Renew until the lease is lost, or the store has not answered for as long as the lease lasts."""
        renewed = self._clock.monotonic()
        while True:
            await self._clock.sleep(self._seconds / 3)
            try:
                await self._aside(partial(self._renew_once, lease))
                renewed = self._clock.monotonic()
            except LeaseLost:
                raise
            except Exception as error:
                log.warning("lease %s not renewed: %s", lease.name, error)
                if self._clock.monotonic() - renewed > self._seconds:
                    raise LeaseLost(f"loop {lease.name}: the lease could not be renewed in time") from error

    async def _released(self, lease: Lease) -> None:
        try:
            await self._aside(partial(self._release_once, lease))
        except Exception as error:
            log.warning("lease %s not given back: %s", lease.name, error)

    async def _aside(self, call: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _renew_once(self, lease: Lease) -> None:
        renew(self._store, lease, now=self._clock.now(), seconds=self._seconds)

    def _release_once(self, lease: Lease) -> None:
        release(self._store, lease, now=self._clock.now())

    def _acquire(self, name: str, sight: Sight) -> Lease | None:
        now = self._clock.now()
        return acquire(self._store, name, self._holder, now=now, seconds=self._seconds, sight=sight)


def _is_to_end() -> bool:
    """False where nobody has cancelled the task itself, but something that it waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _end(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
