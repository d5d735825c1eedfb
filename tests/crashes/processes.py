"""Real processes that tests kill, stop and start again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class Process:
    """One `python -m module`, in a group of its own, started as often as it is killed."""

    def __init__(self, module: str, env: Mapping[str, str], log: Path, arguments: Sequence[object] = ()) -> None:
        self._command: Sequence[str] = [sys.executable, "-m", module, *map(str, arguments)]
        self._env = dict(env)
        self._log = log
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process as it runs now."""
        assert self._child is not None
        return self._child.pid

    @property
    def is_running(self) -> bool:
        """False before the first start, and once it has ended."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Begin (again)."""
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(self._command, env=self._env, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """`kill -9` the process alone, as the kernel does when memory runs out; its children live on."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def pause(self) -> None:
        """Stop the process and its children, as a machine that is suspended does."""
        os.killpg(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue what was paused."""
        os.killpg(self.pid, signal.SIGCONT)

    def exit_code(self, seconds: float = 30.0) -> int:
        """Wait until it has ended by itself."""
        assert self._child is not None
        return self._child.wait(seconds)

    def end(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._child.wait()

    def told(self) -> str:
        """The end of what it has written."""
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""


class Program(Process):
    """The same for a program that is not ours."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        super().__init__("", env, log)
        self._command = command


def spin(question: Callable[[], object], what: str, seconds: float = 75.0) -> None:
    """Ask almost without a pause until the answer is true: what is waited for may last for milliseconds."""
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.003)


def children_of(pid: int) -> list[int]:
    """The processes whose parent is `pid` at this moment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name, which may hold anything, stand state and parent.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry.name))
    return found
