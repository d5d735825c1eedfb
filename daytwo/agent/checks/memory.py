"""What the GPUs say of their memory: errors that ECC could not correct, rows and pages set aside, spares that run out.

A count that is missing because the device does not have it is no fault; one that could not be read is a finding of its
own (`memory-unreadable`), and neither fires nor clears another.
"""

from __future__ import annotations

from typing import Final

from daytwo.agent.checks.look import Look
from daytwo.agent.seams import GpuReading
from daytwo.wire import CheckState

UNCORRECTABLE: Final = "ecc-uncorrectable"
SRAM_THRESHOLD: Final = "ecc-sram-threshold"
CORRECTED_RATE: Final = "ecc-corrected-rate"
REMAP_PENDING: Final = "row-remap-pending"
REMAP_FAILED: Final = "row-remap-failed"
NO_SPARE_ROWS: Final = "row-remap-exhausted"
RETIREMENT_PENDING: Final = "page-retirement-pending"
RETIREMENT_LIMIT: Final = "page-retirement-limit"
UNREADABLE: Final = "memory-unreadable"

CORRECTED_PER_MINUTE: Final = 100.0
"""Azure's healthagent warned above this (defaults.yaml at 6ff9e4d4); nobody else gives a figure."""
RETIRED_PAGES: Final = 63
"""DCGM's limit for a board; NVML holds 64."""

ECC: Final = (UNCORRECTABLE, SRAM_THRESHOLD, CORRECTED_RATE)
ROWS: Final = (REMAP_PENDING, REMAP_FAILED, NO_SPARE_ROWS, RETIREMENT_PENDING, RETIREMENT_LIMIT)


def ecc(look: Look) -> CheckState:
    """Did memory return data that could not be corrected, or correct more than it should?"""
    for gpu in look.report.gpus:
        _judge_uncorrectable(look, gpu)
        _flag(look, gpu, "sram_threshold", SRAM_THRESHOLD, "the SRAM error threshold flag")
        _judge_rate(look, gpu)
        if gpu.counts:
            evidence = gpu.counts_error or "its memory's counts can be read"
            look.set(UNREADABLE, look.inventory.entity_of(gpu), gpu.counts_error is not None, evidence)
    return _state(look, ("volatile_uncorrected", "aggregate_uncorrected"), *ECC, UNREADABLE)


def rows(look: Look) -> CheckState:
    """Is a bad row or page waiting to be set aside, could one not be, or are the spares used up?"""
    for gpu in look.report.gpus:
        entity = look.inventory.entity_of(gpu)
        shown = _rows_shown(gpu)
        if gpu.remap_pending is not None:
            look.set(REMAP_PENDING, entity, gpu.remap_pending, f"row remap pending {gpu.remap_pending}; {shown}")
        if gpu.remap_failed is not None:
            look.set(REMAP_FAILED, entity, gpu.remap_failed, f"row remap failure flag {gpu.remap_failed}; {shown}")
        if (none := gpu.counts.get("banks_none")) is not None:
            look.set(NO_SPARE_ROWS, entity, none > 0, f"{none} banks without a spare row; {shown}", banks_none=none)
        _flag(look, gpu, "retirement_pending", RETIREMENT_PENDING, "page retirement pending")
        _judge_retired(look, gpu)
    return _state(look, ("remapped_uncorrected", "retired_double_bit"), *ROWS)


def _judge_uncorrectable(look: Look, gpu: GpuReading) -> None:
    """The volatile count tells what came since the GPU was last reset; the aggregate one only where there is no other.

    A count that fell back to 0 clears nothing: the driver was loaded again, and whether that cured the GPU is for the
    tests of a repair to say.
    """
    counted = "volatile_uncorrected" if "volatile_uncorrected" in gpu.counts else "aggregate_uncorrected"
    count = gpu.counts.get(counted)
    if count is None:
        return
    entity, grown = look.inventory.entity_of(gpu), look.counters.grown(gpu, counted)
    detail: dict[str, str | int | None] = {"count": count, "since": counted.split("_")[0], "new": grown}
    if look.levels.is_firing(UNCORRECTABLE, entity) and grown:
        look.levels.again(UNCORRECTABLE, entity, grown, source="nvml", evidence=_errors_shown(gpu), detail=dict(detail))
    else:
        holds = count > 0 if counted == "volatile_uncorrected" else grown > 0
        look.set(UNCORRECTABLE, entity, holds, _errors_shown(gpu), **detail)


def _judge_rate(look: Look, gpu: GpuReading) -> None:
    counted = "volatile_corrected" if "volatile_corrected" in gpu.counts else "aggregate_corrected"
    rate = look.counters.per_minute(gpu, counted)
    if rate is not None:
        evidence = f"{rate:.0f} corrected errors a minute, {gpu.counts[counted]} in all"
        look.set(CORRECTED_RATE, look.inventory.entity_of(gpu), rate > CORRECTED_PER_MINUTE, evidence)


def _judge_retired(look: Look, gpu: GpuReading) -> None:
    single, double = gpu.counts.get("retired_single_bit"), gpu.counts.get("retired_double_bit")
    if single is not None and double is not None:
        evidence = f"{single + double} pages retired, {double} of them for double-bit errors"
        at_limit = single + double >= RETIRED_PAGES
        look.set(RETIREMENT_LIMIT, look.inventory.entity_of(gpu), at_limit, evidence, retired=single + double)


def _flag(look: Look, gpu: GpuReading, name: str, fault: str, words: str) -> None:
    if (value := gpu.counts.get(name)) is not None:
        look.set(fault, look.inventory.entity_of(gpu), value > 0, f"{words} is {value}; {_errors_shown(gpu)}")


def _state(look: Look, names: tuple[str, ...], *faults: str) -> CheckState:
    """Firing first, then unknown where a count could not be read, unsupported where no device counts any of these."""
    if look.levels.any_firing(*faults):
        return "firing"
    if look.report.trouble:
        return "unknown"
    readings = [[gpu.counts[name] for name in names if name in gpu.counts] for gpu in look.report.gpus if not gpu.lost]
    if any(None in each for each in readings) or (look.report.gpus and not readings):
        return "unknown"
    return "ok" if any(readings) else "unsupported"


def _errors_shown(gpu: GpuReading) -> str:
    counts = ", ".join(f"{name} {gpu.counts[name]}" for name in _ERRORS if gpu.counts.get(name) is not None)
    return f"uncorrectable errors: {counts or 'not counted'}"


_ERRORS: Final = tuple(
    f"{kind}_uncorrected{where}" for kind in ("volatile", "aggregate") for where in ("", "_dram", "_sram")
)


def _rows_shown(gpu: GpuReading) -> str:
    names = (
        "remapped_corrected",
        "remapped_uncorrected",
        "banks_max",
        "banks_high",
        "banks_partial",
        "banks_low",
        "banks_none",
    )
    return ", ".join(f"{name} {gpu.counts[name]}" for name in names if gpu.counts.get(name) is not None) or "no counts"
