"""The service for people, as a process: `python -m workers.service`, until SIGTERM or SIGINT.

It answers without Temporal too: what is decided then waits in the store, and the reconciler delivers it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

import uvicorn

from daytwo import settings as settings_module
from daytwo.backoff import patiently
from daytwo.domain.errors import DaytwoError, TryAgain
from daytwo.process import harden
from daytwo.service.app import create_app
from daytwo.service.local_socket import actor_of, listen, server, stay_bound
from daytwo.settings import Settings
from daytwo.store.engine import Store
from daytwo.temporal import Repairs, TemporalDelivery, connect

log = logging.getLogger(__name__)


class WhenTemporalAnswers:
    """A `Delivery` that connects when it is first needed, and again until that has worked."""

    def __init__(self, store: Store, task_queue: str) -> None:
        self._store = store
        self._task_queue = task_queue
        self._connecting = asyncio.Lock()
        self._delivery: TemporalDelivery | None = None

    async def deliver(self, decision_id: str) -> None:
        """Hand one decision to its repair. Raises `Unreachable` or `NotFound`."""
        async with self._connecting:
            if self._delivery is None:
                self._delivery = TemporalDelivery(self._store, Repairs(await connect(), self._task_queue))
        await self._delivery.deliver(decision_id)


async def serve(settings: Settings) -> None:
    """Serve until a signal. Raises `Refused` when another service has the socket, `TooNew` as the store does."""
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = Store(settings.store_url)
    beside: list[asyncio.Task[None]] = []
    try:
        try:
            await asyncio.to_thread(store.migrate)
        except TryAgain as error:
            # People must be told just then. Until it is back, only the status answers with anything but an error.
            log.warning("%s", error)
            again = patiently("the store", lambda: asyncio.to_thread(store.migrate))
            beside.append(asyncio.create_task(again))
        delivery = WhenTemporalAnswers(store, settings.task_queue)
        app = create_app(store, delivery=delivery, owner=actor_of(os.geteuid()))
        bound = listen(settings.service_socket)
        log.info("serving people on %s", settings.service_socket)
        web = server(app)
        beside.append(asyncio.create_task(stay_bound(web, settings.service_socket)))
        for task in beside:
            task.add_done_callback(lambda done: _stop_where_it_failed(done, web))
        await web.serve(sockets=[bound])
        for task in beside:
            if task.done():
                task.result()
    finally:
        for task in beside:
            task.cancel()
        store.close()


def _stop_where_it_failed(done: asyncio.Task[None], web: uvicorn.Server) -> None:
    """End when the store came back newer than this program, or when another service took the socket."""
    if not done.cancelled() and done.exception() is not None:
        web.should_exit = True


def main() -> int:
    """Run the service of this installation; return the exit code."""
    harden()
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops in order on a signal and raises it again afterwards, when there is nothing left to stop.
        signal.signal(number, lambda *_: None)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(serve(settings_module.load()))
    except DaytwoError as error:
        sys.stderr.write(f"service: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
