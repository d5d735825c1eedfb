"""What the agent gets for a kernel record: which fault, on which GPU, and whether it begins or ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daytwo.faults.catalogue import catalogue
from daytwo.faults.kernel_line import KernelRecord, parse_line
from daytwo.faults.off_bus import RECORDS_BETWEEN, OffBus
from daytwo.faults.signals import Signal, read

BLOCK = (
    "NVRM: The NVIDIA GPU 0000:18:00.0",
    "NVRM: (PCI ID: 10de:2901) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)


def signal_of(line: str, off_bus: OffBus | None = None) -> Signal | None:
    record = parse_line(line)
    assert record is not None
    return read(record, off_bus)


def test_an_xid_is_reported_on_its_gpu_with_what_the_line_tells() -> None:
    text = "NVRM: Xid (PCI:0000:3B:00 GPU-I:02): 31, pid=7, name=python3, MMU Fault"
    assert signal_of(f"4,1,2,-;{text}") == Signal(
        fault="xid-31",
        entity_pci="0000:3b:00",
        evidence=text,
        detail={"xid": 31, "message": "MMU Fault", "pid": 7, "process": "python3", "gpu_instance": 2},
    )


def test_the_earlier_xid_is_carried_with_a_later_one() -> None:
    signal = signal_of("NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=t, Ch 1 caused by previous Xid 48")
    assert signal is not None
    assert (signal.fault, signal.caused_by, signal.detail["caused_by"]) == ("xid-45", 48, 48)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 9])
def test_a_recovery_action_begins_by_its_number(number: int) -> None:
    signal = signal_of(f"NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (a) to {number:#x} (b)")
    assert signal is not None
    assert (signal.clears, signal.cleared, signal.detail["recovery_action"]) == (False, (), number)


def test_a_recovery_action_that_goes_back_to_zero_ends_both_of_its_faults() -> None:
    signal = signal_of("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (a) to 0x0 (None)")
    assert signal is not None
    assert (signal.clears, signal.cleared) == (True, ("xid-154", "recovery-action"))


def test_a_recovery_action_that_cannot_be_read_ends_nothing() -> None:
    signal = signal_of("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (a")
    assert signal is not None
    assert (signal.fault, signal.clears) == ("xid-154", False)


@pytest.mark.parametrize(
    ("line", "pci"),
    [
        ("NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", "0000:91:00"),
        ("NVRM: GPU 18:00.0: GPU has fallen off the bus.", "0000:18:00"),
        ("NVRM: GPU at 0000:01:00.0 has fallen off the bus.", "0000:01:00"),
        ("NVRM: GPU at PCI:0000:0A:00: has fallen off the bus.", "0000:0a:00"),
        ("\n".join(BLOCK), "0000:18:00"),
        ("3,1,2,-;" + r"\x0a".join(BLOCK), "0000:18:00"),
        ("3,1,2,-;" + "\n               ".join(BLOCK), "0000:18:00"),
        ("3,1,2,-;" + r"\x0a".join(BLOCK) + "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:18:00.0\n", "0000:18:00"),
        (" ".join(line.removeprefix("NVRM: ") if n else line for n, line in enumerate(BLOCK)), "0000:18:00"),
        (BLOCK[2], None),
    ],
)
def test_a_gpu_off_the_bus_is_found_without_an_xid(line: str, pci: str | None) -> None:
    signal = signal_of(line)
    assert signal is not None
    assert (signal.fault, signal.entity_pci) == ("gpu-off-bus", pci)


@pytest.mark.parametrize(("between", "pci"), [(0, "0000:18:00"), (3, "0000:18:00"), (RECORDS_BETWEEN, None)])
def test_a_block_in_three_records_names_its_gpu_if_its_lines_are_near(between: int, pci: str | None) -> None:
    off_bus = OffBus()
    assert [signal_of(line, off_bus) for line in (*BLOCK[:2], *["usb 1-1: new device"] * between)].count(
        None
    ) == 2 + between
    signal = signal_of(BLOCK[2], off_bus)
    assert signal == Signal("gpu-off-bus", pci, BLOCK[2])


def test_an_address_is_used_for_one_block_only() -> None:
    off_bus = OffBus()
    signals = [signal_of(line, off_bus) for line in (*BLOCK, BLOCK[2])]
    assert [signal.entity_pci for signal in signals if signal] == ["0000:18:00", None]


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: GPU 0000:91:00.0: GPU serial number is 1.",
        "NVRM: GPU at PCI:0000:91:00: GPU-b6c3b2be-c55b-d076-fa0e-d464e4c7e08b",
        "NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:1) is not supported",
        f"NVRM: quoted {BLOCK[2]}",
        "trainer[1]: segfault in NVRM: GPU at 0000:01:00.0 has fallen off the bus.",
        r"4,1,2,-;trainer[1]: segfault in a\x0a" + r"\x0a".join(BLOCK),
        r"4,1,2,-;NVRM: a\x0aNVRM: b\x0aNVRM: c\x0a" + BLOCK[2],
        "",
    ],
)
def test_other_lines_are_no_signal(line: str) -> None:
    assert signal_of(line) is None


def test_evidence_is_one_line_of_bounded_length() -> None:
    signal = signal_of("3,1,2,-;NVRM: Xid (PCI:0000:3b:00): 13, " + r"a\x0ab" * 1_000)
    assert signal is not None
    assert len(signal.evidence) == 500
    assert "\n" not in signal.evidence


@given(st.text(st.characters(), max_size=300), st.lists(st.sampled_from([*BLOCK, "x", "NVRM: x"]), max_size=8))
def test_no_record_ever_raises_and_every_signal_is_in_the_catalogue(tail: str, others: list[str]) -> None:
    off_bus = OffBus()
    texts = [tail, f"NVRM: {tail}", f"NVRM: Xid (PCI:0000:3b:00): 7{tail}", *others]
    signals = [read(KernelRecord(text), off_bus) for text in texts]
    assert all(catalogue().get(signal.fault).id == signal.fault for signal in signals if signal)
