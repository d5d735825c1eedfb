"""Keeps child processes alive: starts them, waits until they answer, restarts them, stops them in reverse order.

`workers.up` calls it. A child dies with its parent, writes to its own log file, and is restarted with a growing pause.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daytwo.backoff import Backoff
from daytwo.domain.errors import Failed
from workers.ports import listens

Probe = Callable[[], Awaitable[bool]]

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
# A child that lived this long had really started: its next death begins with a short pause again.
SETTLED_SECONDS: Final = 60.0
STOP_SECONDS: Final = 12.0
LOG_BYTES: Final = 64 * 1024 * 1024
"""Of one child's log, and of the older part that is kept beside it."""
LOOK_AT_LOGS_SECONDS: Final = 60.0
TRIES_BEFORE_READY: Final = 3

PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Child:
    """A process to keep. `ready` says whether it answers; it has `limit_seconds` from its first start.

    `port`: what answers must be this process, and not another installation that took the port meanwhile.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    ready: Probe
    limit_seconds: float = 60.0
    port: int | None = None
    stop_seconds: float = STOP_SECONDS


@dataclass(slots=True)
class _Kept:
    child: Child
    process: Process | None = None
    keeper: asyncio.Task[None] | None = None
    deaths: int = 0
    last_end: str = ""
    stopping: bool = False


class Supervisor:
    """The children of one installation. `say` gets one line for people whenever something unplanned happens."""

    def __init__(
        self,
        log_dir: Path,
        say: Callable[[str], None],
        *,
        log_bytes: int = LOG_BYTES,
        look_seconds: float = LOOK_AT_LOGS_SECONDS,
    ) -> None:
        self._log_dir = log_dir
        self._say = say
        self._log_bytes = log_bytes
        self._kept: list[_Kept] = []
        self._look_seconds = look_seconds
        log_dir.mkdir(parents=True, exist_ok=True)

    def log_of(self, name: str) -> Path:
        """The file that the child's output goes to."""
        return self._log_dir / f"{name}.log"

    async def start(self, *children: Child) -> None:
        """Start these at the same time; return when all answer. Raises `Failed` with the log of one that does not."""
        started = [_Kept(child) for child in children]
        self._kept += started
        for kept in started:
            kept.keeper = asyncio.create_task(self._keep(kept), name=kept.child.name)
        await asyncio.gather(*(self._until_ready(kept) for kept in started))

    async def stop(self) -> None:
        """Stop all children, the last started first."""
        while self._kept:
            await self._stop(self._kept.pop())

    def status(self) -> dict[str, int | None]:
        """The process id of each child, `None` while it is between two lives."""
        return {kept.child.name: kept.process.pid if kept.process else None for kept in self._kept}

    async def _keep(self, kept: _Kept) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while not kept.stopping:
            began = time.monotonic()
            kept.last_end = await self._life(kept)
            if kept.stopping:
                return
            kept.deaths += 1
            if time.monotonic() - began > SETTLED_SECONDS:
                backoff.reset()
            pause = backoff.next()
            self._say(f"{kept.child.name} {kept.last_end}; starting it again in {pause:.1f} s")
            await asyncio.sleep(pause)

    async def _life(self, kept: _Kept) -> str:
        """One life of a child; returns how it ended. Where it cannot begin, for want of anything, the next one may."""
        try:
            return f"ended with {_status(await self._live_once(kept))}"
        except (OSError, subprocess.SubprocessError) as error:
            return f"could not be started: {error}"

    async def _live_once(self, kept: _Kept) -> int:
        path = self.log_of(kept.child.name)
        await asyncio.to_thread(_shorten, path, self._log_bytes)
        with path.open("ab") as log:
            kept.process = await asyncio.create_subprocess_exec(
                *kept.child.command,
                env=dict(kept.child.env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C on a terminal goes to a whole session: the children have their own, to be stopped in order.
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),
            )
        try:
            return await self._ended(kept.process, path)
        finally:
            if kept.process.returncode is not None:
                kept.process = None

    async def _ended(self, process: Process, log: Path) -> int:
        """Wait for its end, and look after its log meanwhile."""
        while True:
            with suppress(TimeoutError):
                return await asyncio.wait_for(process.wait(), self._look_seconds)
            await asyncio.to_thread(_shorten, log, self._log_bytes)

    async def _until_ready(self, kept: _Kept) -> None:
        child = kept.child
        give_up = time.monotonic() + child.limit_seconds
        while not await _is_ready(kept):
            if kept.deaths >= TRIES_BEFORE_READY:
                raise Failed(self._with_log(child.name, f"ended {kept.deaths} times ({kept.last_end})"))
            if time.monotonic() > give_up:
                raise Failed(self._with_log(child.name, f"did not answer within {child.limit_seconds:g} s"))
            await asyncio.sleep(0.1)

    def _with_log(self, name: str, what: str) -> str:
        tail = self.log_of(name).read_text(errors="replace").splitlines()[-12:]
        return "\n".join([f"{name} {what}. The end of {self.log_of(name)}:", *(f"  {line}" for line in tail)])

    async def _stop(self, kept: _Kept) -> None:
        kept.stopping = True
        process, keeper = kept.process, kept.keeper
        if process:
            _signal(process.pid, signal.SIGTERM)
        elif keeper:
            keeper.cancel()
        if keeper is None:
            return
        _done, alive = await asyncio.wait([keeper], timeout=kept.child.stop_seconds)
        if alive and process:
            self._say(f"{kept.child.name} did not stop within {kept.child.stop_seconds:g} s: killed")
            _signal(process.pid, signal.SIGKILL)
            await asyncio.wait([keeper])


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _die_with(parent: int) -> Callable[[], None]:
    """Runs in the child between fork and exec: the kernel ends it when its parent ends, however that happens."""

    def arm() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before the line above
            os._exit(1)

    return arm


async def _is_ready(kept: _Kept) -> bool:
    process, port = kept.process, kept.child.port
    if process is None or not await kept.child.ready():
        return False
    return port is None or listens(process.pid, port)


def _shorten(log: Path, most: int) -> None:
    """Begin a log anew that is too long; what it said is kept beside it. Its writer appends, and notices nothing."""
    with suppress(OSError):
        if log.stat().st_size <= most:
            return
        with suppress(OSError):  # on a full disk it is more important that it ends
            shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


def _status(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
