"""The control worker: polls Temporal, runs workflows and activities. Any number may run."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.worker import Worker

from activities.registry import activities_of
from activities.world import World
from daytwo import settings as settings_module
from daytwo.adapters import Adapters
from daytwo.backoff import patiently
from daytwo.domain.errors import DaytwoError
from daytwo.intents import Ledger
from daytwo.notify.log import LogNotifier
from daytwo.notify.noted import NotedNotifier
from daytwo.outages import Outages
from daytwo.process import harden
from daytwo.settings import Settings
from daytwo.store.engine import Store
from daytwo.temporal import connect, register_search_attributes
from workers.sandbox import workflow_runner
from workflows.node_repair import NodeRepair

log = logging.getLogger(__name__)

GRACE: Final = timedelta(seconds=20)
"""A try under way may finish before the worker leaves: longer than the sender's deadline."""
CACHED: Final = 1_000
"""Open repairs kept in memory; a sandboxed one is some 175 KiB (temporal.md 2.1)."""
STICKY: Final = timedelta(seconds=settings_module.seconds("DAYTWO_STICKY_SECONDS", 10.0))
"""How long Temporal waits for a worker that died before another one gets its workflows."""


def build(client: Client, settings: Settings, store: Store) -> Worker:
    """A worker for everything on the plane's task queue."""
    outages = Outages(store, "worker")
    adapters = Adapters(store, outages)
    notifier = NotedNotifier(LogNotifier(settings.state_dir / "notices.jsonl"), outages)
    world = World(store, adapters, Ledger(store, adapters), notifier)
    return Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[NodeRepair],
        activities=activities_of(world),
        workflow_runner=workflow_runner(),
        max_cached_workflows=CACHED,
        graceful_shutdown_timeout=GRACE,
        sticky_queue_schedule_to_start_timeout=STICKY,
    )


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is under way."""
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    store = Store(settings.store_url)
    await patiently("the store", lambda: asyncio.to_thread(store.migrate))
    client = await patiently("Temporal", connect)
    added = await patiently("Temporal", lambda: register_search_attributes(client))
    log.info("search attributes added: %s", ", ".join(added) or "none")
    async with build(client, settings, store):
        log.info("serving task queue %s", settings.task_queue)
        await stop.wait()
    store.close()


def main() -> int:
    """Run the control worker of this installation; return the exit code."""
    harden()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every read of a simulated fleet
    try:
        asyncio.run(run(settings_module.load()))
    except DaytwoError as error:
        sys.stderr.write(f"worker: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
