"""A real journal, followed by a real journalctl."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from daytwo.agent.identity import SystemClock
from daytwo.agent.journal_log import JournalLog
from daytwo.agent.seams import LogRecord, Position
from tests.agent.journal import BOOT, Journal, needs_journal
from tests.agent.processes import AgentProcess, HttpGateway, until

XID = "NVRM: Xid (PCI:0000:1a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


class Reading:
    """A journal being followed, with all that came of it."""

    def __init__(self, log: JournalLog) -> None:
        self.log = log
        self.records: list[LogRecord] = []

    def until(self, text: str) -> LogRecord:
        return until(lambda: next((each for each in self.look() if text in each.record.text), None))

    def look(self) -> list[LogRecord]:
        self.records += self.log.collect()
        return self.records

    def texts(self) -> list[str]:
        return [each.record.text for each in self.look()]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    folder = tmp_path / "journal"
    folder.mkdir()
    return Journal(folder)


@pytest.fixture
def opened() -> Iterator[list[JournalLog]]:
    logs: list[JournalLog] = []
    yield logs
    for log in logs:
        log.close()


def follow(
    opened: list[JournalLog], folder: Path, position: Position | None = None, *, program: str = "journalctl"
) -> Reading:
    log = JournalLog(boot_id=BOOT, clock=SystemClock(), wake=lambda: None, folder=folder, program=program)
    opened.append(log)
    log.start(position, same_boot=True)
    return Reading(log)


@needs_journal
def test_kernel_messages_of_this_boot_are_read_and_followed(journal: Journal, opened: list[JournalLog]) -> None:
    journal.write("NVRM: one")
    reading = follow(opened, journal.folder)
    first = reading.until("one")
    journal.write("NVRM: two")
    reading.until("two")
    assert (first.record.level, first.record.monotonic_us, first.record.from_user_space) == (4, 1_000_001, False)
    assert reading.log.status().source == f"journal:{journal.folder}"
    assert reading.log.status().readable


@needs_journal
def test_more_than_the_last_ten_messages_are_read(journal: Journal, opened: list[JournalLog]) -> None:
    journal.write(*(f"NVRM: {number}." for number in range(40)))
    reading = follow(opened, journal.folder)
    reading.until("39.")
    assert len(reading.texts()) == 40


@needs_journal
def test_another_boot_and_what_is_not_the_kernels_are_not_read(journal: Journal, opened: list[JournalLog]) -> None:
    journal.write("NVRM: of another boot", boot="0" * 31 + "1")
    journal.write("NVRM: a user says", transport="stdout")
    journal.write("NVRM: now")
    reading = follow(opened, journal.folder)
    reading.until("now")
    assert reading.texts() == ["NVRM: now"]


@needs_journal
def test_what_a_process_wrote_into_the_kernel_log_is_told_apart(journal: Journal, opened: list[JournalLog]) -> None:
    journal.write(XID, facility=1)
    assert follow(opened, journal.folder).until("79").record.from_user_space


@needs_journal
def test_reading_goes_on_after_the_cursor_that_was_kept(journal: Journal, opened: list[JournalLog]) -> None:
    journal.write("NVRM: one", "NVRM: two")
    place = follow(opened, journal.folder).until("one").position
    again = follow(opened, journal.folder, place)
    again.until("two")
    assert again.texts() == ["NVRM: two"]


@needs_journal
def test_a_cursor_that_the_journal_does_not_know_begins_the_boot_anew(
    journal: Journal, opened: list[JournalLog]
) -> None:
    journal.write("NVRM: one")
    reading = follow(opened, journal.folder, (1, "nonsense"))
    reading.log.retry_seconds = 0.05
    reading.until("one")
    assert reading.log.status().readable


@needs_journal
def test_messages_of_several_lines_and_of_odd_bytes_are_read(journal: Journal, opened: list[JournalLog]) -> None:
    journal.write("NVRM: two\nlines", "NVRM: odd \x1b[31m")
    reading = follow(opened, journal.folder)
    reading.until("odd")
    assert reading.texts() == ["NVRM: two\nlines", "NVRM: odd \\x1b[31m"]


@needs_journal
def test_an_empty_journal_is_not_readable(journal: Journal, opened: list[JournalLog]) -> None:
    journal.write("NVRM: of another boot", boot="0" * 31 + "1")
    reading = follow(opened, journal.folder)
    assert until(lambda: reading.log.status().error) == f"{journal.folder} was not opened yet"
    assert not reading.log.status().readable


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("no-such-journalctl", "there is no no-such-journalctl (package systemd)"),
        ("false", "false ended with status 1"),
    ],
)
def test_a_journal_that_cannot_be_followed_says_why(
    tmp_path: Path, opened: list[JournalLog], program: str, said: str
) -> None:
    reading = follow(opened, tmp_path, program=program)
    until(lambda: said in reading.log.status().error)
    assert not reading.log.status().readable


@needs_journal
def test_an_agent_on_the_journal_loses_and_repeats_nothing_over_kill_9(
    agent: AgentProcess, http_gateway: HttpGateway, journal: Journal
) -> None:
    for code in (79, 48):
        agent.start(kernel_log=f"journal:{journal.folder}")
        journal.write(XID.replace("79", str(code)))
        until(partial(http_gateway.records, f"xid-{code}"), 30.0)
        agent.kill()
    by_number = {record["sequence"]: (record["fault"], record["count"]) for record in http_gateway.records()}
    assert by_number == {1: ("xid-79", 1), 2: ("xid-48", 1)}
    assert http_gateway.pulses()[-1]["kernel_log"] == f"journal:{journal.folder}"
