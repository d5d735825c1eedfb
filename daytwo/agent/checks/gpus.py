"""What one reading of the GPUs means: readable, all there, not slowed by the hardware, nothing asked by the driver.

A reading that is missing is a finding (`nvml-unreadable`), one that a device does not have is not. What could not be
read neither fires nor clears anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from daytwo.agent.checks import memory
from daytwo.agent.checks.look import Look
from daytwo.agent.seams import HARDWARE_SLOWDOWN, GpuReading
from daytwo.faults.recovery import NOTHING
from daytwo.faults.signals import OFF_BUS, RECOVERY_ACTION, XID_RECOVERY
from daytwo.wire import CheckState, node_entity

WIRE_NAMES: Final = {"reasons": "hw_slowdown"}

UNREADABLE: Final = "nvml-unreadable"
THERMAL: Final = "thermal-throttle"


def nvml(look: Look) -> CheckState:
    """Can the driver be asked at all, and does each GPU that is there answer every question?"""
    report = look.report
    if report.trouble in ("no-library", "no-driver") and look.inventory.expected == 0:
        look.set(UNREADABLE, node_entity(), False, "no GPU is expected")
        return "unsupported"
    evidence = report.error or "NVML answers"
    look.set(UNREADABLE, node_entity(), bool(report.trouble), evidence, trouble=report.trouble or None)
    for gpu in report.gpus:
        if not gpu.lost:
            look.set(UNREADABLE, look.inventory.entity_of(gpu), not gpu.ok, gpu.error or "the GPU answers")
    return "firing" if look.levels.any_firing(UNREADABLE) else "ok"


def gpu_count(look: Look) -> CheckState:
    """Are all GPUs there? A lost one is named by its UUID where that was learnt, else the node is."""
    if look.inventory.expected == 0 and not look.report.gpus:
        return "unsupported"
    if not look.report.trouble:
        _judge_presence(look)
    if look.levels.any_firing(OFF_BUS):
        return "firing"
    return "unknown" if look.report.trouble or look.inventory.expected is None else "ok"


def _judge_presence(look: Look) -> None:
    expected = max(look.inventory.expected or 0, len(look.report.gpus))
    there = sum(not gpu.lost for gpu in look.report.gpus)
    evidence = f"{there} of {expected} GPUs answer"
    short = there < expected
    # With as many GPUs as expected a UUID that is missing is a swapped board, not a lost one.
    lost = look.inventory.missing(look.report) if short else []
    for gpu in look.inventory.known():
        look.set(OFF_BUS, gpu, gpu in lost, evidence, expected=expected, seen=there)
    look.set(OFF_BUS, node_entity(), short and not lost, evidence, expected=expected, seen=there)


def thermal(look: Look) -> CheckState:
    """Does the board's own protection lower the clocks? What the software asks for is not a fault."""
    for gpu in look.report.gpus:
        if gpu.reasons is not None:
            slowed = gpu.reasons & HARDWARE_SLOWDOWN
            evidence = f"clock event reasons {gpu.reasons:#x}"
            look.set(THERMAL, look.inventory.entity_of(gpu), bool(slowed), evidence, reasons=gpu.reasons)
    return look.state([gpu.reasons for gpu in look.report.gpus], "reasons", THERMAL)


def recovery_action(look: Look) -> CheckState:
    """Does the driver ask for something? Polled: it logs no Xid 154 for the first change after it was loaded."""
    for gpu in look.report.gpus:
        if gpu.recovery_action is not None:
            _judge_recovery(look, gpu, gpu.recovery_action)
    readings = [gpu.recovery_action for gpu in look.report.gpus]
    return look.state(readings, "recovery_action", RECOVERY_ACTION, XID_RECOVERY)


def _judge_recovery(look: Look, gpu: GpuReading, number: int) -> None:
    entity, evidence = look.inventory.entity_of(gpu), f"recovery action {number}"
    look.set(RECOVERY_ACTION, entity, number != NOTHING, evidence, recovery_action=number)
    if number == NOTHING and look.levels.marked_before(XID_RECOVERY, entity, look.asked_at):
        look.set(XID_RECOVERY, entity, False, evidence, recovery_action=number)


CHECKS: Final[Mapping[str, Callable[[Look], CheckState]]] = {
    "nvml": nvml,
    "gpu-count": gpu_count,
    "thermal": thermal,
    "recovery-action": recovery_action,
    "memory-errors": memory.ecc,
    "memory-rows": memory.rows,
}


def probe_result(look: Look) -> dict[str, object]:
    """Return the result of `probe-gpus`, as `daytwo.wire` has it."""
    report = look.report
    return {
        "gpus": [_probed(gpu) for gpu in report.gpus],
        "expected": look.inventory.expected,
        "seen": sum(not gpu.lost for gpu in report.gpus),
        "driver": report.driver,
        "error": report.error,
    }


def _probed(gpu: GpuReading) -> dict[str, object]:
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "pci": gpu.pci,
        "ok": gpu.ok,
        "error": gpu.error,
        "recovery_action": gpu.recovery_action,
        "remap_pending": gpu.remap_pending,
        "remap_failed": gpu.remap_failed,
        "hw_slowdown": None if gpu.reasons is None else bool(gpu.reasons & HARDWARE_SLOWDOWN),
        "unsupported": [WIRE_NAMES.get(name, name) for name in gpu.unsupported],
    }
