"""The controller: supervised loops, each under a lease in the store. Any number may run, each loop in one of them.

`DAYTWO_LEASE_SECONDS` is after how long another takes over from one that died; only tests need another value than 15.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Final

from daytwo import settings as settings_module
from daytwo.adapters import Adapters
from daytwo.controller.clusters import watch_clusters
from daytwo.controller.leases import Lease
from daytwo.controller.loops import LEASE_SECONDS, Clock, Supervisor, every, holder_name
from daytwo.controller.reconcile import Reconciler
from daytwo.controller.silence import watch_silence
from daytwo.intents import Ledger
from daytwo.settings import Settings
from daytwo.store.engine import Store
from daytwo.temporal import Repairs, connect

LOOK_SECONDS: Final = 0.05
"""Between two looks for due nodes: one indexed read. It bounds how soon after a finding its repair opens."""


def loops(store: Store, settings: Settings, *, lease_seconds: float = LEASE_SECONDS) -> Supervisor:
    """All loops of a controller, ready to run."""
    clock = Clock()
    adapters = Adapters(store)
    supervisor = Supervisor(store, holder=holder_name(), lease_seconds=lease_seconds, clock=clock)

    async def reconcile(lease: Lease) -> None:
        temporal = Repairs(await connect(), settings.task_queue)
        ledger = Ledger(store, adapters)
        reconciler = Reconciler(store, adapters, ledger, temporal, guard=lease.guard, now=clock.now)
        await every(LOOK_SECONDS, reconciler.step, clock=clock)

    async def watch(lease: Lease) -> None:
        await watch_clusters(store, adapters, lease, clock=clock)

    async def silence(lease: Lease) -> None:
        await watch_silence(store, lease, clock=clock)

    supervisor.add("reconcile", reconcile)
    supervisor.add("watch-schedulers", watch)
    supervisor.add("watch-silence", silence)
    return supervisor


async def run(settings: Settings) -> None:
    """Run the loops until SIGTERM or SIGINT. Raises `BadInput` for a wrong `DAYTWO_LEASE_SECONDS`."""
    lease_seconds = settings_module.seconds("DAYTWO_LEASE_SECONDS", LEASE_SECONDS)
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    store = Store(settings.store_url)
    await asyncio.to_thread(store.migrate)
    await loops(store, settings, lease_seconds=lease_seconds).run(stop)
    store.close()


def main() -> None:
    """Run the controller of this installation."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(run(settings_module.load()))


if __name__ == "__main__":
    main()
