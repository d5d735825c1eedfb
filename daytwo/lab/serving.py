"""Serving a lab on a Unix socket, for as long as a block lasts. `daytwo.lab.main` and the tests use it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from daytwo.lab.server import Lab, lab_app
from daytwo.unix_socket import listening

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""How often a lab looks whether its socket is still there."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the loop."""
        yield


@asynccontextmanager
async def serving(lab: Lab, path: Path) -> AsyncIterator[None]:
    """Serve `lab` on the socket `path`, which only its user may open, while the block lasts.

    A socket that was deleted is bound again: what the fleet is doing would be lost with its process.
    """
    app = lab_app(lab)
    async with serving_app(app, listen(path)):
        staying = asyncio.create_task(_stay_bound(app, path))
        try:
            yield
        finally:
            staying.cancel()
            await asyncio.gather(staying, return_exceptions=True)
            with suppress(FileNotFoundError):
                os.unlink(path)


async def _stay_bound(app: ASGIApp, path: Path) -> None:
    """Return only when cancelled. A lab that took the path over keeps it: only where there is no file is one made."""
    async with AsyncExitStack() as lasting:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if await asyncio.to_thread(path.exists):
                continue
            try:
                await lasting.enter_async_context(serving_app(app, listen(path)))
            except OSError as error:
                log.warning("the socket %s is gone and cannot be bound: %s", path, error)
            else:
                log.warning("the socket %s was deleted; it is bound again", path)


@asynccontextmanager
async def serving_app(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve `app` on a socket that listens already, in this loop, while the block lasts."""
    # `uds` only keeps uvicorn from taking the socket's name apart as host and port.
    config = uvicorn.Config(app, uds=str(listener.getsockname()), log_level="error", lifespan="off", ws="none")
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        # Requests that hang by order would be waited for otherwise.
        server.should_exit = server.force_exit = True
        await task


def listen(path: Path) -> socket.socket:
    """Return a listening Unix socket at `path`, in the place of an old one, for its user only."""
    return listening(path, 0o600)
