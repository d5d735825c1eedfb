"""Whatever a log wraps around a kernel message, the message comes out the same, with what the wrapping tells."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daytwo.faults.kernel_line import MAX_LINE, KernelRecord, parse_line

TEXT = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."

PREFIXES = {
    "none": ("", {}),
    "seconds": ("[12345.678901] ", {"monotonic_us": 12_345_678_901}),
    "padded seconds": ("[    5.25] ", {"monotonic_us": 5_250_000}),
    "thread, apart": ("[ 130.456250] [ T1946] ", {"monotonic_us": 130_456_250}),
    "thread, joined": ("[  130.456250][ T1946] ", {"monotonic_us": 130_456_250}),
    "processor": ("[  130.456250][   C3] ", {"monotonic_us": 130_456_250}),
    "dmesg -T": ("[Mon Mar  3 06:24:18 2025] ", {}),
    "dmesg iso": ("2025-03-03T06:24:18,283302+00:00 ", {}),
    "dmesg -x": ("kern  :err   : [12345.678901] ", {"facility": 0, "level": 3, "monotonic_us": 12_345_678_901}),
    "dmesg -x iso": ("kern  :warn  : 2025-03-03T06:24:18,283302+00:00 ", {"facility": 0, "level": 4}),
    "dmesg -x user": ("user  :err   : [    1.000001] ", {"facility": 1, "level": 3, "monotonic_us": 1_000_001}),
    "dmesg -r": ("<3>[    1.000001] ", {"facility": 0, "level": 3, "monotonic_us": 1_000_001}),
    "priority": ("<11>", {"facility": 1, "level": 3}),
    "tag": ("kernel: ", {}),
    "tag and seconds": ("kernel: [16450076.435595] ", {"monotonic_us": 16_450_076_435_595}),
    "syslog": ("Mar  3 06:24:18 gpu-017 kernel: ", {}),
    "syslog with seconds": ("Mar 13 06:24:18 gpu-017 kernel: [    1.5] ", {"monotonic_us": 1_500_000}),
    "syslog on the wire": ("<4>Mar  3 06:24:18 gpu-017 kernel: ", {"facility": 0, "level": 4}),
    "iso syslog": ("2026-03-03T06:24:18+0000 gpu-017 kernel: ", {}),
    "rfc 5424": (
        "<4>1 2026-03-03T06:24:18.123456+00:00 gpu-017 kernel - - - [12345.678901] ",
        {"facility": 0, "level": 4, "monotonic_us": 12_345_678_901},
    ),
    "rfc 5424 with data": ('<4>1 2026-03-03T06:24:18Z gpu-017 kernel - - [a b="c"] ', {"facility": 0, "level": 4}),
    "journalctl short-monotonic": ("[12345.678901] gpu-017 kernel: ", {"monotonic_us": 12_345_678_901}),
    "kmsg": (
        "3,1227,437812449932,-;",
        {"facility": 0, "level": 3, "sequence": 1227, "monotonic_us": 437_812_449_932},
    ),
    "kmsg continued": ("4,7,9,c;", {"facility": 0, "level": 4, "sequence": 7, "monotonic_us": 9}),
    "kmsg with more fields": ("4,7,9,c,1,-;", {"facility": 0, "level": 4, "sequence": 7, "monotonic_us": 9}),
    "kmsg with caller": ("4,7,9,-,caller=T1946;", {"facility": 0, "level": 4, "sequence": 7, "monotonic_us": 9}),
    "kmsg from user space": ("11,7,9,-;", {"facility": 1, "level": 3, "sequence": 7, "monotonic_us": 9}),
    "talos": ("10.1.2.3: kern: warning: [2026-03-03T06:24:18.291660856Z]: ", {"facility": 0, "level": 4}),
    "esxi": ("2026-03-03T06:24:18.345Z cpu12:2099434)", {}),
    "esxi 8": ("2026-03-03T06:24:18.345Z In(182) vmkernel: cpu12:2099434)", {}),
    "cut by a person": ("[...] ", {}),
}


@pytest.mark.parametrize(("prefix", "told"), PREFIXES.values(), ids=PREFIXES)
def test_every_known_prefix_is_taken_off_and_read(prefix: str, told: dict[str, int]) -> None:
    assert parse_line(f"{prefix}{TEXT}\n".encode()) == KernelRecord(TEXT, **told)


def journal(**fields: object) -> str:
    return json.dumps({"MESSAGE": TEXT, **fields})


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (journal(_TRANSPORT="kernel", PRIORITY="3"), KernelRecord(TEXT, 0, 3)),
        (journal(_TRANSPORT="kernel", SYSLOG_FACILITY="1", PRIORITY="4"), KernelRecord(TEXT, 1, 4)),
        (journal(_TRANSPORT="syslog"), KernelRecord(TEXT, 1)),
        (journal(_SOURCE_MONOTONIC_TIMESTAMP="12345678901"), KernelRecord(TEXT, monotonic_us=12_345_678_901)),
        (journal(PRIORITY=["3", "4"]), KernelRecord(TEXT)),
        (journal(MESSAGE=list(TEXT.encode())), KernelRecord(TEXT)),
        (journal(MESSAGE=[78, 255]), KernelRecord("N\\xff")),
        (journal(MESSAGE="a\ud800b\0"), KernelRecord("a\\ud800b\\x00")),
        (journal(MESSAGE=None), None),
        (journal(MESSAGE=[999]), None),
        (journal(MESSAGE=7), None),
    ],
)
def test_a_journal_entry_gives_its_message_and_says_who_wrote_it(line: str, record: KernelRecord | None) -> None:
    assert parse_line(line) == record


def test_a_message_that_stands_for_several_is_counted() -> None:
    line = f"Mar  3 06:24:18 gpu-017 kernel: message repeated 9 times: [ {TEXT}]"
    assert parse_line(line) == KernelRecord(TEXT, repeated=9)


def test_the_kernels_escapes_are_undone_and_its_dictionary_dropped() -> None:
    assert parse_line("3,1,2,-;one \\x5c\\x0atwo\\x0aSUBSYSTEM=pci\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n") == (
        KernelRecord("one \\\ntwo", 0, 3, 1, monotonic_us=2)
    )


def test_a_hidden_control_character_stays_spelled_out() -> None:
    record = parse_line(r"3,1,2,-;a\x00b\x1bc\xffd")
    assert record is not None
    assert record.text == r"a\x00b\x1bc\xffd"


@pytest.mark.parametrize("line", ["", "\n", " SUBSYSTEM=pci", " DEVICE=+pci:0000:3b:00.0\n"])
def test_a_line_that_carries_no_message_is_no_damage(line: str) -> None:
    assert parse_line(line) == KernelRecord("")


DAMAGED = {
    "invalid UTF-8": b"3,1,2,-;NVRM: \xff\xfe",
    "NUL": b"NVRM: \x00 Xid",
    "binary": bytes(range(32)),
    "a header cut short": b"3,1227,4378",
    "a header cut shorter": b"3,1227",
    "JSON cut short": b'{"MESSAGE":"NVRM: Xi',
    "JSON nested without end": b'{"a":' + b"[" * 50_000,
    "JSON with an endless number": b'{"a":' + b"9" * 5_000 + b"}",
    "one megabyte": TEXT.encode() + b"x" * 1_000_000,
}


@pytest.mark.parametrize("raw", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_line_is_skipped(raw: bytes) -> None:
    assert parse_line(raw) is None


@pytest.mark.parametrize(
    "line",
    [
        f"Mar  3 06:24:18 gpu-017 trainer[12]: {TEXT}",
        f"Mar  3 06:24:18 gpu-017 slurmd: kernel: {TEXT}",
        f"4,7,9,-;trainer[12]: segfault at 0 in kernel: {TEXT}",
        f"3,7,9,-;message repeated 2 times: [ {TEXT}]",
    ],
)
def test_a_driver_line_quoted_by_another_program_keeps_that_programs_words(line: str) -> None:
    record = parse_line(line)
    assert record is not None
    assert not record.text.startswith("NVRM:")


@pytest.mark.parametrize(("line", "user"), [(f"3,1,2,-;{TEXT}", False), (f"11,1,2,-;{TEXT}", True), (TEXT, False)])
def test_a_record_tells_whether_a_process_wrote_it(line: str, user: bool) -> None:
    record = parse_line(line)
    assert record is not None
    assert record.from_user_space is user


@given(st.binary(max_size=300) | st.text(st.characters(), max_size=300))
@example('{"MESSAGE":{}}')
@example("<9999>1 ")
@example("\ud800\udfff")
def test_no_line_ever_raises(raw: bytes | str) -> None:
    record = parse_line(raw)
    assert record is None or record.text.encode().count(b"\0") == 0


PIECES = (
    "4,1,2,-;",
    "<4>1 ",
    "[ 1.5] ",
    "kern  :",
    "kernel: ",
    "\\x0a",
    "\nSUBSYSTEM=x",
    "[a]",
    " ",
    "message repeated 3",
)


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_no_heap_of_prefixes_ever_raises(line: str) -> None:
    record = parse_line(line)
    assert record is None or "\0" not in record.text


@pytest.mark.parametrize("piece", [*PIECES, "a: ", "<4>1 2026-03-03T06:24:18Z h kernel - - [a][", "\nDEVICE=+", "\\x"])
def test_the_longest_line_costs_no_more_than_its_length(piece: str) -> None:
    line = (piece * MAX_LINE)[:MAX_LINE]
    before = time.process_time()
    parse_line(line)
    # Takes about 20 ms; a pattern that goes back over the line would take minutes.
    assert time.process_time() - before < 2
