"""The kernel's messages out of the systemd journal, for agents that may not read /dev/kmsg. A `journalctl` follows it.

The journal says nothing of what it dropped, and shows an empty log to somebody who may not read it: so it counts as
readable only once it has shown a kernel message of this boot. No kernel is silent for a whole boot.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

from daytwo.agent.kernel_log import LONGEST_LINE, LogReader
from daytwo.agent.seams import Clock, LogRecord, Position
from daytwo.faults.kernel_line import parse_line

PROGRAM: Final = "journalctl"
ENDS_WITHIN: Final = 1.0


class JournalLog(LogReader):
    """The journal of this machine, or the one in `folder`. The position is (number, cursor) of the last record.

    Its numbers are the journal's own. `boot_id` is the kernel's, whose messages are read.
    """

    retry_seconds = 5.0

    def __init__(
        self,
        *,
        boot_id: str,
        clock: Clock,
        wake: Callable[[], None],
        folder: Path | None = None,
        program: str = PROGRAM,
    ) -> None:
        self._folder, self._program = folder, program
        self._match = (f"_BOOT_ID={boot_id.replace('-', '')}", "_TRANSPORT=kernel")
        self._cursor = ""
        source = f"journal:{folder}" if folder else "journal"
        super().__init__(Path(folder or program), source=source, clock=clock, wake=wake)

    def _resume(self, position: Position | None, *, same_boot: bool) -> None:
        self._cursor = str(position[1]) if position and same_boot else ""

    def _read(self) -> None:
        if shutil.which(self._program) is None:
            raise FileNotFoundError(0, f"there is no {self._program} (package systemd)")
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(
                self._command(), stdout=subprocess.PIPE, stderr=complaints, stdin=subprocess.DEVNULL
            )
            try:
                if self._cursor:
                    self._note()
                for line in self._lines(cast(IO[bytes], process.stdout)):
                    self._take(line)
            finally:
                _end(process)
            if not self._stopping:
                self._ended(process.returncode, _said(complaints))

    def _command(self) -> list[str]:
        where = [f"--directory={self._folder}"] if self._folder else []
        after = [f"--after-cursor={self._cursor}"] if self._cursor else []
        return [self._program, "--output=json", "--follow", "--no-tail", *where, *after, *self._match]

    def _lines(self, output: IO[bytes]) -> Iterator[bytes]:
        """Yield whole lines until the program ends or the agent stops. One without end is cut: it cannot be read."""
        buffer = b""
        while not self._stopping:
            ready, _, _ = select.select([output.fileno(), self._stop], [], [])
            if output.fileno() not in ready:
                continue
            data = os.read(output.fileno(), 65_536)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            yield from lines
            buffer = buffer[: LONGEST_LINE + 1]

    def _take(self, line: bytes) -> None:
        place, record = _place(line), parse_line(line)
        if place is None:
            self._note(damaged=1)
            return
        self._cursor = str(place[1])
        self._note(damaged=int(record is None))
        if record is not None and record.text:
            at = self._written_at(record.monotonic_us)
            self._deliver(LogRecord(record, int(place[0]), at, place))

    def _ended(self, status: int, said: str) -> None:
        if "cursor" in said:
            self._cursor = ""  # what it names is gone: this boot is read from its start
        self._note(readable=False, error=f"{self._program} ended with status {status}: {said}".rstrip(": "))
        self._wait(self.retry_seconds)


def _place(line: bytes) -> Position | None:
    """Return the number and the cursor of an entry: `s=…;i=4d9;b=…` counts entries, in hexadecimal digits."""
    try:
        entry: Any = json.loads(line)
        cursor = entry["__CURSOR"]
        parts = dict(part.split("=", 1) for part in cursor.split(";"))
        return int(parts["i"], 16), cursor
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _said(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    return complaints.read(4_096).decode(errors="replace").strip()[-300:]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(ENDS_WITHIN)
    if process.stdout is not None:
        process.stdout.close()
