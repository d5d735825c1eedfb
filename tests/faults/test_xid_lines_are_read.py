"""Every form of an Xid line that a driver prints is read; what only looks like one is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daytwo.faults.xid import XidLine, parse_xid

A = "0000:3b:00"

LINES = {
    "plain": (
        f"NVRM: Xid (PCI:{A}): 79, GPU has fallen off the bus.",
        XidLine(79, A, message="GPU has fallen off the bus."),
    ),
    "no text": (f"NVRM: Xid (PCI:{A}): 46", XidLine(46, A)),
    "legacy": ("NVRM: Xid (0000:03:00): 14, Channel 00000001", XidLine(14, "0000:03:00", message="Channel 00000001")),
    "function": (f"NVRM: Xid (PCI:{A}.0): 79", XidLine(79, A, function=0)),
    "upper case": ("NVRM: Xid (PCI:000A:BC:00): 8, x", XidLine(8, "000a:bc:00", message="x")),
    "long domain": ("NVRM: Xid (PCI:10000:01:00): 8, x", XidLine(8, "10000:01:00", message="x")),
    "instance": (f"NVRM: Xid (PCI:{A} GPU-I:05): 94, pid=7, m", XidLine(94, A, gpu_instance=5, pid=7, message="m")),
    "both instances": (
        f"NVRM: Xid (PCI:{A} GPU-I:05 GPU-CI:01): 31, pid=7, name=python3, m",
        XidLine(31, A, gpu_instance=5, compute_instance=1, pid=7, process="python3", message="m"),
    ),
    "unknown process": (f"NVRM: Xid (PCI:{A}): 48, pid='<unknown>', name=<unknown>, m", XidLine(48, A, message="m")),
    "unknown, unquoted": (f"NVRM: Xid (PCI:{A}): 74, pid=<unknown>, name=<unknown>, m", XidLine(74, A, message="m")),
    "pid alone": (f"NVRM: Xid (PCI:{A}): 32, pid=1234", XidLine(32, A, pid=1234)),
    "cut after the pid": (f"NVRM: Xid (PCI:{A}): 38, pid=1659,", XidLine(38, A, pid=1659)),
    "name alone": (f"NVRM: Xid (PCI:{A}): 8, pid=5, name=idle", XidLine(8, A, pid=5, process="idle")),
    "odd name": (
        f"NVRM: Xid (PCI:{A}): 119, pid=5, name=nvc:[driver] x, Timeout",
        XidLine(119, A, pid=5, process="nvc:[driver] x", message="Timeout"),
    ),
    "name with a line feed": (
        f"NVRM: Xid (PCI:{A}): 43, pid=5, name=a\nb, Ch 8",
        XidLine(43, A, pid=5, process="a\nb", message="Ch 8"),
    ),
    "caused by": (
        f"NVRM: Xid (PCI:{A}): 45, pid=5, name=t, Ch 1 caused by previous Xid 149",
        XidLine(45, A, pid=5, process="t", message="Ch 1 caused by previous Xid 149", caused_by=149),
    ),
}


@pytest.mark.parametrize(("text", "line"), LINES.values(), ids=LINES)
def test_every_form_is_read(text: str, line: XidLine) -> None:
    assert parse_xid(text) == line


@pytest.mark.parametrize(
    ("words", "recovery"),
    [
        ("from 0x0 (None) to 0x1 (GPU Reset Required)", (0, 1)),
        ("from 0x0 (None) to 0x1 (PF FLR)", (0, 1)),
        ("from 0x4 (Drain and Reset) to 0x5 (Recover IMEX Domain)", (4, 5)),
        ("from 0x2 (OS Reboot) to 0x0 (None)", (2, 0)),
        ("from 0x0 to 0xa", (0, 10)),
        ("from 0x0 (None)", None),
    ],
)
def test_a_recovery_action_is_read_by_its_number(words: str, recovery: tuple[int, int] | None) -> None:
    line = parse_xid(f"NVRM: Xid (PCI:{A}): 154, pid=5, name=t, GPU recovery action changed {words}")
    assert line is not None
    assert line.recovery == recovery


def test_only_xid_154_carries_a_recovery_action() -> None:
    line = parse_xid(f"NVRM: Xid (PCI:{A}): 43, GPU recovery action changed from 0x1 (x) to 0x0 (y)")
    assert line is not None
    assert line.recovery is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVRM: Xid",
        "NVRM: Xid : 32, pid=2",
        f"NVRM: Xid (PCI:{A}): abc, pid=2",
        f"NVRM: Xid (PCI:{A}.0): INVALID, pid=2, name=p",
        "NVRM: Xid error: xyz",
        f"NVRM: Xid PCI:{A}: 43, pid=2",
        f"NVRM: Xid (PCI:{A}): 123456, too long a number",
        f"NVRM: Xid (PCI:{A}): 79 GPU has fallen off the bus",
        f"NVRM: Xid (PCI:{A}): ٧٩, not our digits",
        "XidCriticalError: Xid=48 on Device=GPU-1; marking device as unhealthy.",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
        f"nhc: check_gpu_xid: NVRM: Xid (PCI:{A}): 119, pid=2",
        f"trainer[1]: segfault in NVRM: Xid (PCI:{A}): 79, x",
    ],
)
def test_what_only_looks_like_an_xid_is_not_one(text: str) -> None:
    assert parse_xid(text) is None


@given(st.text(st.characters(), max_size=200))
@example("9" * 5_000)
def test_no_text_ever_raises(tail: str) -> None:
    parse_xid(tail)
    line = parse_xid(f"NVRM: Xid (PCI:{A}): 154, {tail}")
    assert line is not None
    assert line.xid == 154


@given(
    st.integers(1, 99_999),
    st.integers(0, 2**32),
    st.text(st.characters(exclude_characters=","), min_size=1, max_size=15),
)
def test_what_the_driver_writes_is_what_is_read(xid: int, pid: int, name: str) -> None:
    line = parse_xid(f"NVRM: Xid (PCI:{A}): {xid}, pid={pid}, name={name}, Ch 1")
    assert line is not None
    assert (line.xid, line.pid, line.process or "<unknown>", line.message) == (xid, pid, name, "Ch 1")


@pytest.mark.parametrize(
    "piece", [" ", "pid=1, ", " caused by previous Xid 1", "GPU recovery action changed from 0x1 (", "(((", ", name="]
)
def test_a_line_of_a_megabyte_costs_no_more_than_its_length(piece: str) -> None:
    before = time.process_time()
    parse_xid(f"NVRM: Xid (PCI:{A}): 154, " + piece * (1_000_000 // len(piece)))
    # Takes about 20 ms; a pattern that goes back over the line would take minutes.
    assert time.process_time() - before < 2
