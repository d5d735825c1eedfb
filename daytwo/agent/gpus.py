"""The GPUs of this machine: NVML in a child process with a deadline, as a call into a sick driver may never return.

A child that hangs is killed. One that cannot be killed (it sits in the kernel) is left behind, and no other is started
while it is there: each would hang in the same place.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, Final, cast

from daytwo.agent.holders import holders
from daytwo.agent.inventory import short_address
from daytwo.agent.seams import GpuReading, GpuReport, GpuTrouble, LetGo

COMMAND: Final = (sys.executable, "-m", "daytwo.agent.gpu_child")
DIES_WITHIN: Final = 1.0


class NvmlGpus:
    """Implements the seam `Gpus`. `wake` is called when a report is there."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._deadlines: SimpleQueue[float | _LetGo | None] = SimpleQueue()
        self._let_go: SimpleQueue[LetGo] = SimpleQueue()
        self._reports: SimpleQueue[GpuReport] = SimpleQueue()
        self._child = Child()
        self._thread = threading.Thread(target=self._serve, name="gpus", daemon=True)
        self._thread.start()

    def ask(self, deadline_seconds: float) -> None:
        """Start a reading; its report is there when the deadline has passed, or before."""
        self._deadlines.put(deadline_seconds)

    def collect(self) -> GpuReport | None:
        """Return a report, once."""
        return None if self._reports.empty() else self._reports.get()

    def let_go(self) -> None:
        """End the child, by force if it is busy: with it ends all that holds a GPU."""
        self._deadlines.put(_LetGo())
        self._child.signal()

    def collect_let_go(self) -> LetGo | None:
        """Return what came of it, once."""
        return None if self._let_go.empty() else self._let_go.get()

    def close(self) -> None:
        """End the child, by force if it is busy."""
        self._deadlines.put(None)
        self._child.signal()
        self._thread.join(DIES_WITHIN)

    def _serve(self) -> None:
        while (order := self._deadlines.get()) is not None:
            if isinstance(order, _LetGo):
                self._child.kill()
                stuck = "the NVML process hangs in the kernel and cannot be killed" if self._child.is_there else ""
                self._let_go.put(LetGo(not stuck, holders(), stuck))
            else:
                self._reports.put(self._child.read(order))
            self._wake()
        self._child.kill()


class _LetGo:
    """Between two readings: let go."""


class ChildEnded(Exception):
    """The child ended in the middle of an answer."""


class Child:
    """The NVML process. It is started when it is needed and killed when it does not answer in time. For one thread."""

    def __init__(self, command: tuple[str, ...] = COMMAND) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def read(self, deadline_seconds: float) -> GpuReport:
        """Return what the child tells before the deadline, or that it hung or died. Never raises."""
        if self._is_stuck():
            return GpuReport(trouble="hung", error="the last NVML process hangs in the kernel and cannot be killed")
        progress = _Progress()
        try:
            for line in self._lines(self._asked(), time.monotonic() + deadline_seconds):
                if report := progress.take(line):
                    return report
        except Exception as error:  # whatever it makes of it: without a report the last one would stand for ever
            self.kill()
            return GpuReport(trouble="failed", error=f"the NVML process failed: {error}")
        self.kill()
        return progress.hung(deadline_seconds)

    @property
    def is_there(self) -> bool:
        """True while its process lives, or cannot be killed."""
        return self._process is not None

    def signal(self) -> None:
        """Tell the child to die; whoever reads from it notices. May be called from another thread."""
        if process := self._process:
            process.kill()

    def kill(self) -> None:
        """Kill the child. One that does not die is kept in mind."""
        if self._process is None:
            return
        self._process.kill()
        self._killed = True
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DIES_WITHIN)
            self._forget()

    def _is_stuck(self) -> bool:
        if self._process is None:
            return False
        ended = self._process.poll() is not None
        if ended:
            self._forget()
        return self._killed and not ended

    def _forget(self) -> None:
        if self._process is not None:
            with self._process:
                self._process = None

    def _asked(self) -> subprocess.Popen[bytes]:
        """Return the child, started if there is none, with the request on its way."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, bufsize=0)
            self._killed = False
        cast(IO[bytes], self._process.stdin).write(b"read\n")
        return self._process

    @staticmethod
    def _lines(process: subprocess.Popen[bytes], ends_at: float) -> Iterator[dict[str, Any]]:
        """Yield the child's lines until the deadline."""
        output, buffer = cast(IO[bytes], process.stdout), b""
        while select.select([output], [], [], max(0.0, ends_at - time.monotonic()))[0]:
            data = output.read(65_536)
            if not data:
                with suppress(subprocess.TimeoutExpired):
                    raise ChildEnded(f"it ended with status {process.wait(DIES_WITHIN)}")
                raise ChildEnded("it has closed its output and does not end")
            *lines, buffer = (buffer + data).split(b"\n")
            yield from (json.loads(line) for line in lines)


class _Progress:
    """The lines of one reading, put together."""

    def __init__(self) -> None:
        self._gpus: list[GpuReading] = []
        self._begun: int | None = None

    def take(self, line: dict[str, Any]) -> GpuReport | None:
        """Take one line; return the report if it was the last."""
        if "begin" in line:
            self._begun = line["begin"]
        elif "gpu" in line:
            self._gpus.append(_reading(line["gpu"]))
        else:
            end = line["end"]
            return GpuReport(tuple(self._gpus), end.get("driver"), cast(GpuTrouble, end["trouble"]), end.get("error"))
        return None

    def hung(self, seconds: float) -> GpuReport:
        """Return what is known of a reading that did not end."""
        where = "" if self._begun is None else f"; it was asked about the GPU with index {self._begun}"
        return GpuReport(tuple(self._gpus), trouble="hung", error=f"NVML did not answer in {seconds:.1f} s{where}")


def _reading(line: dict[str, Any]) -> GpuReading:
    pci = short_address(line["pci"]) if line.get("pci") else None
    return GpuReading(**{**line, "pci": pci, "unsupported": tuple(line["unsupported"])})
