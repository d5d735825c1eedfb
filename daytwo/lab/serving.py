"""Serving a lab on a Unix socket, for as long as a block lasts. `daytwo.lab.main` and the tests use it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn

from daytwo.lab.server import Lab, lab_app


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the loop."""
        yield


@asynccontextmanager
async def serving(lab: Lab, path: Path) -> AsyncIterator[None]:
    """Serve `lab` on the socket `path`, which only its user may open, while the block lasts."""
    listener = _listen(path)
    config = uvicorn.Config(lab_app(lab), uds=str(path), log_level="error", lifespan="off")
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        # Requests that hang by order would be waited for otherwise.
        server.should_exit = server.force_exit = True
        await task
        os.unlink(path)


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    os.chmod(path, 0o600)
    listener.listen(128)
    return listener
