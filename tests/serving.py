"""A real service on a real Unix socket, for tests of the service and of the CLI."""

from __future__ import annotations

import asyncio
import json
import os
import socket as socket_module
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from daytwo.service.answering import StatusReader
from daytwo.service.app import create_app
from daytwo.service.decisions import Delivery
from daytwo.service.local_socket import listen, server
from daytwo.service.plane import plane_of
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow
from tests.builders import NOW


@dataclass
class Repairer:
    """Delivers as a repair would: the decision's row ends with `status`; with none, nobody answers."""

    store: Store
    status: str | None = "accepted"
    why: str = ""
    delivered: list[str] = field(default_factory=list)

    async def deliver(self, decision_id: str) -> None:
        self.delivered.append(decision_id)
        await asyncio.to_thread(self._end, decision_id)

    def _end(self, decision_id: str) -> None:
        if self.status is None:
            return
        with self.store.write() as session:
            row = session.get_one(DecisionRow, decision_id)
            row.status, row.status_reason, row.ended_at = self.status, self.why, NOW
            session.add(row)


class Away:
    """Temporal that does not answer."""

    async def deliver(self, decision_id: str) -> None:
        raise ConnectionError(f"nobody takes {decision_id}")


@contextmanager
def served(store: Store, socket: Path, delivery: Delivery, *, owner: str = "cli:daytwo") -> Iterator[Path]:
    """Serve `store` on `socket` in a thread until the block ends. The listening socket is open before it begins."""
    http = server(create_app(store, delivery=delivery, owner=owner))
    bound = listen(socket)
    thread = threading.Thread(target=lambda: asyncio.run(http.serve(sockets=[bound])))
    thread.start()
    try:
        yield socket
    finally:
        http.should_exit = True
        thread.join()


class Shared:
    """One service for many tests, because starting and stopping one takes longer than most tests."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._app = create_app(Store("sqlite://"), delivery=Away(), owner="cli:daytwo")
        self._http = server(self._app)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(listen(socket),))
        self._thread.start()

    @contextmanager
    def serving(self, store: Store, delivery: Delivery) -> Iterator[Path]:
        """Serve `store` until the block ends and every delivery has ended."""
        plane = plane_of(self._app)
        plane.store, plane.delivery = store, delivery
        # It has run for long, and this machine may have much to do.
        long_ago = plane.clock() - timedelta(days=1)
        plane.statuses = StatusReader(plane.clock, patience_seconds=10.0, started=long_ago)
        yield self.socket
        asyncio.run_coroutine_threadsafe(plane.stop(), self._loop).result()

    def stop(self) -> None:
        self._http.should_exit = True
        self._thread.join()

    def _run(self, bound: socket_module.socket) -> None:
        self._loop.run_until_complete(self._http.serve(sockets=[bound]))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The service that tests take turns with; a conftest imports it."""
    service = Shared(tmp_path_factory.mktemp("shared") / "s")
    yield service
    service.stop()


STRANGER_UID = 54321
_AS_STRANGER = """
import http.client, json, os, socket, sys
path, body = sys.argv[1:]
os.setuid(int(os.environ["STRANGER"]))
connection = http.client.HTTPConnection("service")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect("s")
connection.request("POST", path, body, {"Content-Type": "application/json"})
answer = connection.getresponse()
print(json.dumps([answer.status, json.loads(answer.read())]))
"""


def post_as_stranger(socket: Path, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """POST as a user without a name, which only root can become; returns status and answer."""
    socket.chmod(0o666)
    command = [sys.executable, "-c", _AS_STRANGER, path, json.dumps(body)]
    environment = {**os.environ, "STRANGER": str(STRANGER_UID)}
    done = subprocess.run(command, cwd=socket.parent, env=environment, capture_output=True, text=True, check=True)
    status, answer = json.loads(done.stdout)
    return status, answer
