"""Lines collected from real machines and from other projects: they lie beside the repository and are no part of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daytwo.faults.kernel_line import parse_line
from daytwo.faults.off_bus import OffBus
from daytwo.faults.signals import read
from daytwo.faults.xid import XidLine, parse_xid

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"

pytestmark = pytest.mark.skipif(
    not (SAMPLES / "xid_lines.txt").is_file(), reason=f"NOT RUN: no collected kernel lines in {SAMPLES}"
)

CUT_AFTER_PID = 38
"""A line that ends in `pid=1659,`: the expected values call all of that a message; the driver's format says a pid."""


def lines_of(name: str) -> list[bytes]:
    return (SAMPLES / name).read_bytes().splitlines()


def xid_in(raw: bytes) -> XidLine | None:
    record = parse_line(raw)
    assert record is not None
    return parse_xid(record.text)


def as_expected(line: XidLine) -> dict[str, Any]:
    return {
        "xid": line.xid,
        "pci": line.pci,
        "fn": None if line.function is None else str(line.function),
        "gi": line.gpu_instance,
        "ci": line.compute_instance,
        "pid": line.pid,
        "name": line.process,
        "caused_by": line.caused_by,
        "msg": line.message,
        "recovery": line.recovery,
    }


def expected_of(entry: dict[str, Any]) -> dict[str, Any]:
    recovery = entry.get("recovery")
    wanted = {name: entry[name] for name in ("xid", "pci", "fn", "gi", "ci", "pid", "name", "caused_by", "msg")}
    if entry["xid"] == CUT_AFTER_PID:
        wanted |= {"pid": 1659, "msg": ""}
    return wanted | {"recovery": (recovery["from"], recovery["to"]) if recovery else None}


def test_every_collected_xid_line_is_read_as_expected() -> None:
    lines = lines_of("xid_lines.txt")
    entries = [json.loads(line) for line in lines_of("xid_expected.jsonl")]
    read_lines = [xid_in(lines[entry["line"] - 1]) for entry in entries]
    assert len(entries) == len(lines) > 150
    assert [line and as_expected(line) for line in read_lines] == [expected_of(entry) for entry in entries]


def test_every_unverified_form_of_a_linux_or_esxi_line_is_read() -> None:
    lines = [line for line in lines_of("xid_lines_unverified.txt") if b"NVRM" in line]
    assert len(lines) > 10
    assert [line for line in lines if xid_in(line) is None] == []


@pytest.mark.parametrize(
    "name",
    [
        "xid_negative.txt",
        "healthy_noise_lines.txt",
        "sxid_lines.txt",
        "kernel_host_lines.txt",
        "nic_driver_lines.txt",
        "aer_lines.txt",
        "slurm_reasons.txt",
        "nvidia_smi_broken.txt",
    ],
)
def test_nothing_else_is_a_signal(name: str) -> None:
    records = [parse_line(line) for line in lines_of(name)]
    assert records
    assert [record.text for record in records if record is not None and read(record)] == []


def test_only_the_off_bus_lines_among_the_drivers_other_lines_are_signals() -> None:
    records = [parse_line(line) for line in lines_of("nvrm_non_xid_lines.txt")]
    found = {signal.fault for record in records if record is not None and (signal := read(record))}
    assert found == {"gpu-off-bus"}


def incidents() -> dict[str, list[bytes]]:
    """The collected sequences by name: `### name`, its lines, a blank line."""
    found: dict[str, list[bytes]] = {}
    for line in lines_of("xid_multiline.txt"):
        if line.startswith(b"### "):
            found[line[4:].decode()] = []
        elif line.strip():
            found[list(found)[-1]].append(line)
    return found


@pytest.mark.parametrize(
    ("name", "signals"),
    [
        ("fallen_off_bus_no_xid", [("gpu-off-bus", "0000:18:00")]),
        ("fallen_off_bus_no_xid_indented", [("gpu-off-bus", "0000:b3:00")]),
        ("xid79_then_sxid20034_h100", [("xid-79", "0000:91:00"), ("gpu-off-bus", "0000:91:00")]),
        ("dbe_chain_48_63_94", [(f"xid-{xid}", "0000:52:00") for xid in (48, 63, 94)]),
        ("nvlink_post_rx_detect_loop", []),
    ],
)
def test_a_collected_incident_gives_its_signals_in_order(name: str, signals: list[tuple[str, str]]) -> None:
    off_bus = OffBus()
    records = [parse_line(line) for line in incidents()[name]]
    found = [signal for record in records if record is not None and (signal := read(record, off_bus))]
    assert [(signal.fault, signal.entity_pci) for signal in found] == signals
