"""What may be struck: each can be killed with -9 or stopped for a while, and knows when it is back.

Whoever dies is started again, as `daytwo up` or systemd does; PostgreSQL's first process does it for its backends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import psycopg
from sqlalchemy.engine import make_url

from tests.crashes.processes import Process, children_of
from tests.postgres import Postgres

LOOK_SECONDS: Final = 0.05
AGAIN_SECONDS: Final = 0.5
"""After which whoever ended by itself is started again."""
LIMIT_SECONDS: Final = 60.0


class Victim(Protocol):
    """One process, as the strikes know it."""

    async def begin(self) -> None:
        """Start it, and return when it answers."""

    async def kill(self, away: float) -> None:
        """`kill -9`, and start it again after so many seconds; returns when it is back."""

    async def stop(self, away: float) -> None:
        """SIGSTOP, and SIGCONT after so many seconds; returns when it goes on."""

    def end(self) -> None:
        """Leave nothing behind."""


class Part:
    """A process of ours or Temporal's; it is back when it answers, or when it says so in its log."""

    def __init__(
        self,
        name: str,
        process: Process,
        *,
        answers: Callable[[], Awaitable[bool]] | None = None,
        log: Path | None = None,
        says: str = "",
    ) -> None:
        self.name = name
        self._process = process
        self._answers = answers
        self._log = log
        self._says = says
        self._read_from = 0
        self.ended_by_itself = 0

    async def begin(self) -> None:
        """Start it, and return when it answers; one that ends by itself meanwhile is started again."""
        self._start()
        limit = time.monotonic() + LIMIT_SECONDS
        while not await self._is_back():
            if time.monotonic() > limit:
                raise TimeoutError(f"{self.name} is not back after {LIMIT_SECONDS:.0f} s\n{self._process.told()}")
            await asyncio.sleep(LOOK_SECONDS)
            await self.keep()

    async def keep(self) -> None:
        """Start it again if it has ended by itself."""
        if not self._process.is_running:
            self.ended_by_itself += 1
            await asyncio.sleep(AGAIN_SECONDS)
            self._start()

    async def kill(self, away: float) -> None:
        """Kill it alone: its children live on."""
        self._process.kill()
        await asyncio.sleep(away)
        await self.begin()

    async def stop(self, away: float) -> None:
        """Stop it with its children."""
        self._process.pause()
        await asyncio.sleep(away)
        self._process.go_on()

    def end(self) -> None:
        """Kill it with its children."""
        self._process.end()

    def _start(self) -> None:
        self._read_from = self._log.stat().st_size if self._log and self._log.exists() else 0
        self._process.start()

    async def _is_back(self) -> bool:
        if self._answers is not None:
            return self._process.is_running and await self._answers()
        return self._says.encode() in self._new_words()

    def _new_words(self) -> bytes:
        if self._log is None:
            return b""
        with self._log.open("rb") as log:
            log.seek(self._read_from)
            return log.read()


class Postmaster:
    """PostgreSQL's first process."""

    def __init__(self, server: Postgres, url: str) -> None:
        self._server = server
        self._url = url

    async def begin(self) -> None:
        """It runs already."""

    async def kill(self, away: float) -> None:
        """Kill the first process; the others end when they see it."""
        await asyncio.to_thread(self._server.stop, signal.SIGKILL)
        await asyncio.sleep(away)
        await asyncio.to_thread(self._start)
        await answers(self._url)

    async def stop(self, away: float) -> None:
        """Nobody new gets in, and nobody who has died is followed."""
        os.kill(self._server.pid, signal.SIGSTOP)
        await asyncio.sleep(away)
        os.kill(self._server.pid, signal.SIGCONT)

    def end(self) -> None:
        """Whoever started it ends it; stopped, it would not."""
        with contextlib.suppress(AssertionError, ProcessLookupError):
            os.kill(self._server.pid, signal.SIGCONT)

    def _start(self) -> None:
        """Start it; as long as one of the old processes is there, it refuses."""
        for _ in range(20):
            with contextlib.suppress(RuntimeError, subprocess.SubprocessError):
                return self._server.start()
            time.sleep(0.1)
        raise TimeoutError("PostgreSQL does not start again")


class Backend:
    """One of PostgreSQL's processes that serve a connection, another one each time."""

    def __init__(self, server: Postgres, url: str) -> None:
        self._server = server
        self._url = url

    async def begin(self) -> None:
        """It comes with a connection."""

    async def kill(self, away: float) -> None:
        """Kill one: PostgreSQL then ends all others and recovers."""
        self._send(self._one(), signal.SIGKILL)
        await asyncio.sleep(0.1)
        await answers(self._url)

    async def stop(self, away: float) -> None:
        """Stop one, with whatever it has locked."""
        pid = self._one()
        self._send(pid, signal.SIGSTOP)
        await asyncio.sleep(away)
        self._send(pid, signal.SIGCONT)

    def end(self) -> None:
        """It goes with the server."""

    def _one(self) -> int | None:
        serving = [pid for pid in children_of(self._server.pid) if b"postgres: daytwo " in _title(pid)]
        return random.choice(serving) if serving else None

    def _send(self, pid: int | None, number: int) -> None:
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _title(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


async def answers(url: str) -> None:
    """Return when the database of a store can be asked."""
    address = make_url(url)
    info = f"host={address.query['host']} user={address.username} dbname={address.database} connect_timeout=2"
    limit = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < limit:
        with contextlib.suppress(psycopg.Error):
            await asyncio.to_thread(_ask, info)
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise TimeoutError("PostgreSQL does not answer")


def _ask(info: str) -> None:
    with psycopg.connect(info) as connection:
        connection.execute("SELECT 1")
