"""Serving a lab on a Unix socket, for as long as a block lasts. `daytwo.lab.main` and the tests use it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from daytwo.lab.server import Lab, lab_app


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the loop."""
        yield


@asynccontextmanager
async def serving(lab: Lab, path: Path) -> AsyncIterator[None]:
    """Serve `lab` on the socket `path`, which only its user may open, while the block lasts."""
    async with serving_app(lab_app(lab), listen(path)):
        try:
            yield
        finally:
            os.unlink(path)


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
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    os.chmod(path, 0o600)
    listener.listen(128)
    return listener
