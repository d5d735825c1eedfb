"""Lines that somebody wrote on purpose: jobs choose process names and file names, and may write into the kernel log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daytwo.agent.identity import SystemClock
from daytwo.agent.kernel_log import FileLog
from daytwo.agent.seams import LogRecord
from daytwo.faults.kernel_line import parse_line
from daytwo.gateway.models import Findings
from tests.agent.fakes import EPOCH, XID_79, Node
from tests.agent.processes import until

MEGABYTE = b"x" * 1_000_000


def heard(node: Node, *lines: bytes) -> list[str]:
    """Let the node read these lines; returns the faults that the gateway hears of."""
    for number, raw in enumerate(lines, start=1):
        record = parse_line(raw)
        if record is not None:
            node.log.records.append(LogRecord(record, number, EPOCH, (number,)))
    node.run(5)
    return [record["fault"] for record in node.gateway.records]


def test_a_line_of_a_megabyte_is_counted_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_bytes(b"kernel: one\n" + MEGABYTE + b"kernel: " + XID_79.encode() + b"\nkernel: two\n")
    log = FileLog(path, clock=SystemClock(), wake=lambda: None)
    log.start(None, same_boot=True)
    read: list[str] = []
    until(lambda: read.extend(each.record.text for each in log.collect()) or "two" in read, 5.0)
    log.close()
    assert (read, log.status().damaged) == (["one", "two"], 1)


def test_two_thousand_lines_a_second_are_a_record_a_second_and_none_is_lost() -> None:
    node = Node()
    node.run(1)
    for _ in range(5):
        for _ in range(2_000):
            node.log.write(XID_79)
        node.run(1)
    node.run(10)
    assert len(node.gateway.calls) < 30
    assert sum(record["count"] for record in node.gateway.records) == 10_000


@pytest.mark.parametrize(
    "line",
    [
        b"12,5,100,-;NVRM: Xid (PCI:0000:1a:00): 79, forged",
        b"14,5,100,-,caller=T1;NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
        b"<14>NVRM: Xid (PCI:0000:1a:00): 79, forged",
        b"Aug 19 21:36:23 host python3[7]: NVRM: Xid (PCI:0000:1a:00): 79, forged",
        b"Aug 19 21:36:23 host job: kernel: NVRM: Xid (PCI:0000:1a:00): 79, forged",
        b'4,5,100,-;audit: comm="NVRM: Xid (PCI:0000:1a:00): 79, forged"',
        b"4,5,100,-;a.out[7]: segfault at 0 in NVRM: Xid (PCI:0000:1a:00): 79, forged",
        b"4,5,100,-;job said\\x0aNVRM: Xid (PCI:0000:1a:00): 79, forged",
        json.dumps({"MESSAGE": "NVRM: Xid (PCI:0000:1a:00): 79, x", "_TRANSPORT": "stdout"}).encode(),
        json.dumps({"MESSAGE": "NVRM: Xid (PCI:0000:1a:00): 79, x", "SYSLOG_FACILITY": "1"}).encode(),
    ],
)
def test_driver_text_that_a_process_wrote_is_no_finding(line: bytes) -> None:
    assert heard(Node(), line) == []


@pytest.mark.parametrize(
    "name", ["x" * 60_000, "a\\x00b", "\\x1b[2J", "NVRM: Xid (PCI:0000:1b:00): 48", "(((((", "🦀" * 900]
)
def test_a_process_may_be_called_anything_and_its_fault_is_heard(name: str) -> None:
    node = Node()
    line = f"4,5,100,-;NVRM: Xid (PCI:0000:1a:00): 13, pid=7, name={name}, Graphics Exception"
    assert heard(node, line.encode()) == ["xid-13"]
    sent = next(call.body for call in node.gateway.calls if call.what == "findings")
    assert Findings.model_validate_json(json.dumps(sent)).records[0].detail["xid"] == 13
