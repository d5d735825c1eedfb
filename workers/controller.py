"""The controller: supervised loops, each under a lease in the store. Any number may run, each loop in one of them.

`DAYTWO_LEASE_SECONDS` is after how long another takes over from one that died; only tests need another value than 15.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from daytwo import settings as settings_module
from daytwo.adapters import Adapters
from daytwo.backoff import patiently
from daytwo.controller.clusters import watch_clusters
from daytwo.controller.flapping import watch_flapping
from daytwo.controller.leases import Lease
from daytwo.controller.loops import LEASE_SECONDS, Clock, Supervisor, every, holder_name
from daytwo.controller.pruning import watch_age
from daytwo.controller.racks import watch_racks
from daytwo.controller.reconcile import Reconciler
from daytwo.controller.silence import watch_silence
from daytwo.controller.watch_temporal import watch_temporal
from daytwo.domain.errors import DaytwoError
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.notify.noted import NotedNotifier
from daytwo.outages import Outages
from daytwo.process import harden
from daytwo.settings import Settings
from daytwo.store.commits import Commits
from daytwo.store.engine import Store
from daytwo.temporal import Repairs, connect

LOOK_SECONDS: Final = 0.25
"""Between two looks for what is due by the clock. Whenever somebody has committed, there is one at once."""


def loops(store: Store, settings: Settings, temporal: Repairs, *, lease_seconds: float = LEASE_SECONDS) -> Supervisor:
    """All loops of a controller, ready to run."""
    clock = Clock()
    adapters = Adapters(store)
    supervisor = Supervisor(store, holder=holder_name(), lease_seconds=lease_seconds, clock=clock)

    def notifier(lease: Lease) -> NotedNotifier:
        outages = Outages(store, "controller", guard=lease.guard, now=clock.now)
        return NotedNotifier(LogNotifier(settings.state_dir / "notices.jsonl"), outages)

    async def reconcile(lease: Lease) -> None:
        ledger = Ledger(store, adapters)
        people = notifier(lease)
        reconciler = Reconciler(store, adapters, ledger, temporal, notifier=people, guard=lease.guard, now=clock.now)
        with contextlib.closing(Commits(store)) as commits:
            step = when_due(reconciler.step, commits, clock=clock)
            await every(commits.pause_seconds, step, clock=clock, lease=lease)

    async def look_at_temporal(lease: Lease) -> None:
        outages = Outages(store, "controller", guard=lease.guard, now=clock.now)
        await watch_temporal(temporal, outages, lease, clock=clock)

    async def watch(lease: Lease) -> None:
        await watch_clusters(store, adapters, lease, clock=clock)

    async def age(lease: Lease) -> None:
        await watch_age(store, lease, clock=clock)

    async def silence(lease: Lease) -> None:
        await watch_silence(store, lease, clock=clock)

    async def calm(lease: Lease) -> None:
        await watch_flapping(store, lease, clock=clock)

    async def racks(lease: Lease) -> None:
        await watch_racks(store, notifier(lease), lease, clock=clock)

    supervisor.add("reconcile", reconcile)
    supervisor.add("watch-flapping", calm)
    supervisor.add("watch-age", age)
    supervisor.add("watch-racks", racks)
    supervisor.add("watch-schedulers", watch)
    supervisor.add("watch-silence", silence)
    supervisor.add("watch-temporal", look_at_temporal)
    return supervisor


def when_due(step: Callable[[], Awaitable[object]], commits: Commits, *, clock: Clock) -> Callable[[], Awaitable[None]]:
    """Return a step that does nothing while nobody has committed and nothing can be due by the clock."""
    looked_at: datetime | None = None

    async def look() -> None:
        nonlocal looked_at
        now = clock.now()
        if await commits.any_new() or looked_at is None or now >= looked_at + timedelta(seconds=LOOK_SECONDS):
            looked_at = now
            await step()

    return look


async def run(settings: Settings) -> None:
    """Run the loops until SIGTERM or SIGINT. Raises `BadInput` for a wrong `DAYTWO_LEASE_SECONDS`."""
    lease_seconds = settings_module.seconds("DAYTWO_LEASE_SECONDS", LEASE_SECONDS)
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    store = Store(settings.store_url)
    await patiently("the store", lambda: asyncio.to_thread(store.migrate))
    temporal = Repairs(await connect(lazy=True), settings.task_queue)
    await loops(store, settings, temporal, lease_seconds=lease_seconds).run(stop)
    store.close()


def main() -> int:
    """Run the controller of this installation; return the exit code."""
    harden()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every read of a simulated fleet
    try:
        asyncio.run(run(settings_module.load()))
    except DaytwoError as error:
        sys.stderr.write(f"controller: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
