"""The real /dev/kmsg where it is writable, and files of kernel-format lines."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.agent.identity import SystemClock
from daytwo.agent.kernel_log import FileLog, KmsgLog
from daytwo.agent.seams import LogRecord, Position
from tests.agent.processes import kmsg_writable, until, write_kmsg

needs_kmsg = pytest.mark.skipif(not kmsg_writable(), reason="/dev/kmsg is not writable: run as root")

Log = KmsgLog | FileLog


class Reading:
    """A log being read, with all that came of it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.records: list[LogRecord] = []

    def until(self, text: str) -> LogRecord:
        return until(lambda: next((each for each in self.look() if text in each.record.text), None), 5.0)

    def look(self) -> list[LogRecord]:
        self.records += self.log.collect()
        return self.records

    def texts(self) -> list[str]:
        return [each.record.text for each in self.look()]


@pytest.fixture
def mark() -> str:
    """Nobody else's lines hold this: the device is shared by everything on the machine."""
    return f"daytwo-test-{random.getrandbits(64):016x}"


@pytest.fixture
def opened() -> Iterator[list[Log]]:
    logs: list[Log] = []
    yield logs
    for log in logs:
        log.close()


def read_kmsg(
    opened: list[Log], position: Position | None = None, *, same_boot: bool = True, shared: bool = False
) -> Reading:
    log = KmsgLog(clock=SystemClock(), wake=lambda: None, shared=shared)
    opened.append(log)
    log.start(position, same_boot=same_boot)
    return Reading(log)


def read_file(opened: list[Log], path: Path, position: Position | None = None) -> Reading:
    log = FileLog(path, clock=SystemClock(), wake=lambda: None)
    opened.append(log)
    log.start(position, same_boot=True)
    return Reading(log)


@needs_kmsg
def test_a_record_written_now_is_read_with_its_number_and_time(opened: list[Log], mark: str) -> None:
    reading = read_kmsg(opened)
    write_kmsg(mark)
    record = reading.until(mark)
    assert record.position == (record.sequence,)
    assert abs(record.at - SystemClock().now()) < 5.0


@needs_kmsg
def test_a_record_of_a_process_is_told_apart(opened: list[Log], mark: str) -> None:
    reading = read_kmsg(opened)
    write_kmsg(mark)
    assert reading.until(mark).record.from_user_space


@needs_kmsg
def test_reading_goes_on_after_the_last_record_that_was_taken(opened: list[Log], mark: str) -> None:
    write_kmsg(f"{mark} one")
    taken = read_kmsg(opened).until(f"{mark} one").position
    write_kmsg(f"{mark} two")
    again = read_kmsg(opened, taken)
    again.until(f"{mark} two")
    assert f"{mark} one" not in again.texts()


@needs_kmsg
def test_a_position_of_another_boot_is_not_used(opened: list[Log], mark: str) -> None:
    write_kmsg(mark)
    assert read_kmsg(opened, (10**12,), same_boot=False).until(mark).sequence < 10**12


@needs_kmsg
def test_a_kernel_that_stands_for_several_boots_gives_none_the_past_of_another(opened: list[Log], mark: str) -> None:
    write_kmsg(f"{mark} before")
    reading = read_kmsg(opened, (0,), same_boot=False, shared=True)
    until(lambda: reading.log.status().readable)
    write_kmsg(f"{mark} now")
    reading.until(f"{mark} now")
    assert f"{mark} before" not in reading.texts()


@needs_kmsg
def test_records_that_were_overwritten_are_counted(opened: list[Log], mark: str) -> None:
    write_kmsg(mark)
    # As if the agent had last read a thousand records before the oldest that is left.
    reading = read_kmsg(opened, (-1_001,))
    reading.until(mark)
    assert reading.log.status().lost >= 1_000


def test_a_device_that_is_not_there_is_unreadable_and_says_why(tmp_path: Path, opened: list[Log]) -> None:
    log = KmsgLog(clock=SystemClock(), wake=lambda: None, path=tmp_path / "kmsg")
    opened.append(log)
    log.start(None, same_boot=True)
    until(lambda: "No such file" in log.status().error)
    assert not log.status().readable


def append(path: Path, *lines: str | bytes) -> None:
    with path.open("ab") as file:
        for line in lines:
            file.write((line.encode() if isinstance(line, str) else line) + b"\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kern.log"


@pytest.mark.parametrize(
    "line",
    [
        "4,1227,437812449932,-;NVRM: one",
        "Aug 19 21:36:23 host kernel: [ 12.345678] NVRM: one",
        "[ 12.345678] NVRM: one",
        "NVRM: one",
    ],
)
def test_lines_of_every_form_are_read(path: Path, opened: list[Log], line: str) -> None:
    append(path, line)
    assert read_file(opened, path).until("NVRM: one").record.text == "NVRM: one"


def test_a_file_that_grows_is_followed(path: Path, opened: list[Log]) -> None:
    append(path, "NVRM: one")
    reading = read_file(opened, path)
    reading.until("one")
    append(path, "NVRM: two")
    assert (reading.until("two").sequence, reading.texts()) == (2, ["NVRM: one", "NVRM: two"])


def test_half_a_line_waits_for_its_other_half(path: Path, opened: list[Log]) -> None:
    append(path, "NVRM: one")
    reading = read_file(opened, path)
    reading.until("one")
    with path.open("ab", buffering=0) as file:
        file.write(b"NVRM: t")
        reading.until("one")
        file.write(b"wo\n")
    reading.until("two")
    assert reading.texts() == ["NVRM: one", "NVRM: two"]


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(path: Path, opened: list[Log]) -> None:
    append(path, "NVRM: one")
    reading = read_file(opened, path)
    reading.until("one")
    append(path, "NVRM: last")
    path.rename(path.with_suffix(".1"))
    append(path, "NVRM: new")
    reading.until("new")
    assert reading.texts() == ["NVRM: one", "NVRM: last", "NVRM: new"]


def test_a_truncated_file_is_read_from_its_start(path: Path, opened: list[Log]) -> None:
    append(path, "NVRM: a long line to begin with")
    reading = read_file(opened, path)
    reading.until("begin")
    os.truncate(path, 0)
    append(path, "NVRM: new")
    assert reading.until("new").sequence == 2


def test_a_file_that_is_copied_and_truncated_is_read_anew_however_fast_it_grows(path: Path, opened: list[Log]) -> None:
    append(path, "NVRM: one")
    reading = read_file(opened, path)
    reading.until("one")
    # Between two looks of the agent: smaller never, and another content.
    with path.open("r+b") as file:
        file.truncate()
        file.write(b"NVRM: new\nNVRM: newer\n")
        file.truncate()
    assert (reading.until("newer").sequence, reading.texts()) == (3, ["NVRM: one", "NVRM: new", "NVRM: newer"])


def test_what_was_written_before_a_rotation_that_nobody_saw_is_read(path: Path, opened: list[Log]) -> None:
    append(path, "NVRM: one")
    position = read_file(opened, path).until("one").position
    opened.pop().close()
    append(path, "NVRM: last")
    path.rename(path.with_name("kern.log.1"))
    append(path, "NVRM: new")
    reading = read_file(opened, path, position)
    reading.until("new")
    assert reading.texts() == ["NVRM: last", "NVRM: new"]


def test_a_file_goes_on_after_the_last_line_that_was_taken(path: Path, opened: list[Log]) -> None:
    append(path, "NVRM: one", "NVRM: two")
    position = read_file(opened, path).until("one").position
    again = read_file(opened, path, position)
    assert (again.until("two").sequence, again.texts()) == (2, ["NVRM: two"])


def test_an_old_file_begins_at_its_last_boot(path: Path, opened: list[Log]) -> None:
    append(path, "Linux version 6.1", "NVRM: old", "[ 0.000000] Linux version 6.2", "NVRM: new")
    reading = read_file(opened, path)
    reading.until("new")
    assert reading.texts() == ["Linux version 6.2", "NVRM: new"]


@pytest.mark.parametrize("damage", [b"\x00\x01\x02", b"NVRM: \xff\xfe", b"4,1227,", b"x" * 200_000])
def test_damaged_lines_are_skipped_and_counted(path: Path, opened: list[Log], damage: bytes) -> None:
    append(path, "NVRM: one", damage, "NVRM: two")
    reading = read_file(opened, path)
    reading.until("two")
    assert reading.texts() == ["NVRM: one", "NVRM: two"]
    assert reading.log.status().damaged >= 1


def test_a_file_that_appears_later_is_read(path: Path, opened: list[Log]) -> None:
    reading = read_file(opened, path)
    until(lambda: "No such file" in reading.log.status().error)
    append(path, "NVRM: one")
    reading.until("one")
    assert reading.log.status().readable


class Stumbling(FileLog):
    """A reader that fails at one line, in a way that nobody foresaw."""

    retry_seconds = 0.1

    def _take(self, line: bytes) -> None:
        if b"stumble" in line:
            raise ValueError("nobody foresaw this")
        super()._take(line)


def test_a_reader_that_fails_says_so_and_goes_on_after_the_line(opened: list[Log], tmp_path: Path) -> None:
    said: list[str] = []
    log: Stumbling = Stumbling(tmp_path / "log", clock=SystemClock(), wake=lambda: said.append(log.status().error))
    opened.append(log)
    (tmp_path / "log").write_bytes(b"6,1,1,-;before\n6,2,2,-;stumble\n6,3,3,-;after\n")
    log.start(None, same_boot=True)
    reading = Reading(log)
    reading.until("after")
    assert reading.texts() == ["before", "after"]
    assert any("ValueError: nobody foresaw this" in error for error in said)
