"""The kernel's messages: /dev/kmsg, or a file of kernel-format lines where that cannot be read. Each reads in a thread.

A kernel that prints faster than we read overwrites what was not read: the gap in the sequence numbers tells how much.
Lines that cannot be parsed are skipped and counted. `daytwo.agent.core` reports both.
"""

from __future__ import annotations

import errno
import os
import select
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, Full, Queue
from typing import BinaryIO, Final

from daytwo.agent.seams import Clock, LogRecord, LogStatus, Position
from daytwo.faults.kernel_line import parse_line

KMSG: Final = Path("/dev/kmsg")
RECORD_BYTES: Final = 16 * 1024
QUEUED: Final = 4_096
FILE_POLL_SECONDS: Final = 0.2
LONGEST_LINE: Final = 64 * 1024
HEAD_BYTES: Final = 256
BOOT_BANNER: Final = b"Linux version "


def is_readable(path: Path) -> bool:
    """Say whether this process may read the log: the kernel may ask for more than the mode of the file."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class LogReader(ABC):
    """What all logs share: the thread, the queue to the core, the counts. Implements the seam `KernelLog`."""

    retry_seconds = 30.0

    def __init__(self, path: Path, *, source: str, clock: Clock, wake: Callable[[], None]) -> None:
        self._path, self._clock, self._wake = path, clock, wake
        self._records: Queue[LogRecord] = Queue(QUEUED)
        self._status = LogStatus(readable=False, error=f"{path} was not opened yet", source=source)
        self._stop, self._stop_write = os.pipe()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, position: Position | None, *, same_boot: bool) -> None:
        """Begin to read after `position`; what is being read ends first."""
        self._halt()
        self._resume(position, same_boot=same_boot)
        self._thread = threading.Thread(target=self._follow, name="kernel-log", daemon=True)
        self._thread.start()

    def collect(self) -> Sequence[LogRecord]:
        """Return what came since the last call."""
        records: list[LogRecord] = []
        with suppress(Empty):
            while len(records) < QUEUED:
                records.append(self._records.get_nowait())
        return records

    def status(self) -> LogStatus:
        """Say whether the log can be read, and what was lost of it."""
        return self._status

    def _halt(self) -> None:
        """End the thread, so that another one may begin; it waits for the core no longer than half a second."""
        if self._thread is None:
            return
        self._stopping = True
        os.write(self._stop_write, b"x")
        self._thread.join()
        os.read(self._stop, 1)
        self.collect()
        self._stopping = False

    def close(self) -> None:
        """End the thread."""
        self._stopping = True
        os.write(self._stop_write, b"x")
        if self._thread is not None:
            self._thread.join(1.0)
        if self._thread is None or not self._thread.is_alive():
            os.close(self._stop)
            os.close(self._stop_write)

    @abstractmethod
    def _resume(self, position: Position | None, *, same_boot: bool) -> None:
        """Note after which record to begin."""

    @abstractmethod
    def _read(self) -> None:
        """Read until `_stopping`. Returns early to be called anew; raises `OSError`."""

    def _follow(self) -> None:
        while not self._stopping:
            try:
                self._read()
            except Exception as error:  # a thread that ended would leave the log readable, and silent, for ever
                why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                self._note(readable=False, error=f"{self._path} cannot be read: {why}")
                self._wait(self.retry_seconds)

    def _wait(self, seconds: float) -> None:
        select.select([self._stop], [], [], seconds)

    def _deliver(self, record: LogRecord) -> None:
        """Hand a record to the core; wait while it is busy. What the kernel overwrites meanwhile is counted."""
        while not self._stopping:
            with suppress(Full):
                self._records.put(record, timeout=0.5)
                self._wake()
                return

    def _written_at(self, monotonic_us: int | None) -> float:
        age = self._clock.uptime() - (monotonic_us or 0) / 1e6
        return self._clock.now() - max(0.0, age)

    def _note(self, *, readable: bool = True, error: str = "", lost: int = 0, damaged: int = 0) -> None:
        before = self._status
        self._status = replace(
            before, readable=readable, error=error, lost=before.lost + lost, damaged=before.damaged + damaged
        )
        if self._status != before:
            self._wake()


class KmsgLog(LogReader):
    """/dev/kmsg: the ring of this boot, then what comes. The position is the kernel's sequence number.

    `shared` is for tests that let one kernel stand for several nodes and boots: what was printed before the
    agent's first start in a boot is not of that boot.
    """

    def __init__(self, *, clock: Clock, wake: Callable[[], None], path: Path = KMSG, shared: bool = False) -> None:
        super().__init__(path, source="kmsg", clock=clock, wake=wake)
        self._shared = shared
        self._taken: int | None = None

    def _resume(self, position: Position | None, *, same_boot: bool) -> None:
        self._taken = int(position[0]) if position and same_boot else None

    def _read(self) -> None:
        device = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if self._shared and self._taken is None:
                os.lseek(device, 0, os.SEEK_END)
            self._note()
            while not self._stopping:
                self._read_record(device)
        finally:
            os.close(device)

    def _read_record(self, device: int) -> None:
        try:
            raw = os.read(device, RECORD_BYTES)
        except BlockingIOError:
            select.select([device, self._stop], [], [])
        except OSError as error:
            # EPIPE: records were overwritten; the next read goes on with the oldest that is left. EINVAL: one too long.
            if error.errno not in (errno.EPIPE, errno.EINVAL):
                raise
            self._note(damaged=int(error.errno == errno.EINVAL))
        else:
            self._take(raw)

    def _take(self, raw: bytes) -> None:
        sequence = _sequence(raw)
        if sequence is None:
            self._note(damaged=1)
            return
        if self._taken is not None and sequence <= self._taken:
            return
        if self._taken is not None and sequence > self._taken + 1:
            self._note(lost=sequence - self._taken - 1)
        self._taken = sequence
        record = parse_line(raw)
        if record is None:
            self._note(damaged=1)
        elif record.text:
            self._deliver(LogRecord(record, sequence, self._written_at(record.monotonic_us), (sequence,)))


def _sequence(raw: bytes) -> int | None:
    """Return the number of a record without parsing the rest: most of the ring is skipped after a restart."""
    fields = raw.split(b",", 2)
    return int(fields[1]) if len(fields) == 3 and fields[1].isdigit() else None


class FileLog(LogReader):
    """A file that grows: raw records or syslog lines. Its lines are numbered, and seen when they are read.

    The position is (number, inode, offset) of the last line. Without one the first look begins at the last boot banner,
    so that an old file does not bring back earlier boots' faults. Rotation and truncation (`copytruncate`) start at the
    new beginning, rotation after the end of the old file.
    """

    retry_seconds = 1.0

    def __init__(self, path: Path, *, clock: Clock, wake: Callable[[], None]) -> None:
        super().__init__(path, source=f"file:{path}", clock=clock, wake=wake)
        self._number, self._inode, self._offset = 0, 0, 0
        self._head = b""
        self._resumed = self._too_long = False

    def _resume(self, position: Position | None, *, same_boot: bool) -> None:
        self._resumed = position is not None and len(position) == 3
        if self._resumed and position is not None:
            self._number, self._inode, self._offset = (int(each) for each in position)

    def _read(self) -> None:
        with self._path.open("rb", buffering=LONGEST_LINE) as file:
            self._note()
            self._find_place(file)
            while not self._stopping and not (fate := self._fate(file)):
                self._read_lines(file)
                self._head = _head(file, self._offset)
                self._wait(FILE_POLL_SECONDS)
            if self._stopping or fate == "rotated":
                # What was written between the last look and the rotation.
                self._read_lines(file)
            else:
                self._offset = 0

    def _find_place(self, file: BinaryIO) -> None:
        inode, size = _identity(file)
        if not self._resumed:
            self._number, self._offset = _last_boot(file)
        elif inode != self._inode:
            self._read_rotated()
            self._offset = 0
        elif size < self._offset:
            self._offset = 0
        self._inode, self._resumed = inode, True
        self._head = _head(file, self._offset)
        file.seek(self._offset)

    def _read_rotated(self) -> None:
        """Read what was written to the old file while nobody looked; one that was compressed meanwhile is lost."""
        for path in self._path.parent.iterdir():
            if path.name.startswith(self._path.name) and path.stat().st_ino == self._inode and path.is_file():
                with path.open("rb", buffering=LONGEST_LINE) as file:
                    file.seek(self._offset)
                    self._read_lines(file)

    def _fate(self, file: BinaryIO) -> str:
        """What became of the file: "rotated" away, "truncated" (perhaps written again since), or ""."""
        inode, size = _identity(file)
        if size < self._offset or _head(file, len(self._head)) != self._head:
            return "truncated"
        try:
            return "rotated" if self._path.stat().st_ino != inode else ""
        except FileNotFoundError:
            return ""

    def _read_lines(self, file: BinaryIO) -> None:
        while not self._stopping and (line := file.readline(LONGEST_LINE)):
            ends = line.endswith(b"\n")
            if not ends and len(line) < LONGEST_LINE:
                # Half a line: its writer is not done.
                file.seek(self._offset)
                return
            self._offset += len(line)
            if ends:
                self._number += 1
                self._take(b"" if self._too_long else line)
            self._too_long = not ends

    def _take(self, line: bytes) -> None:
        record = parse_line(line) if line else None
        if record is None:
            self._note(damaged=1)
        elif record.text:
            place = (self._number, self._inode, self._offset)
            self._deliver(LogRecord(record, self._number, self._clock.now(), place))


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_ino, status.st_size


def _head(file: BinaryIO, length: int) -> bytes:
    """Return the beginning of the file, no more than `length`: another one is another content."""
    return os.pread(file.fileno(), min(length, HEAD_BYTES), 0)


def _last_boot(file: BinaryIO) -> tuple[int, int]:
    """Return the number and the offset of the line before the last boot began; (0, 0) if the file does not tell."""
    found, offset = (0, 0), 0
    for number, line in enumerate(file):
        if BOOT_BANNER in line:
            found = (number, offset)
        offset += len(line)
    return found
