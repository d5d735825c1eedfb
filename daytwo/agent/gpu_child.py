"""The process that calls NVML: `python -m daytwo.agent.gpu_child`. `daytwo.agent.gpus` starts it and may kill it.

It reads one word a line (`read`) and answers with JSON lines: one `{"begin": index}` before and one `{"gpu": …}` after
each GPU, so that a hang names its GPU, and a last `{"end": …}`. It ends with its parent or when its input ends.

NVML stays open between readings: on a machine without persistence mode each opening would set up every GPU again.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

import pynvml

PR_SET_PDEATHSIG: Final = 1
NOT_THERE: Final = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
TROUBLES: Final = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no-library",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "no-driver",
}


def main() -> None:
    """Answer until the input ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    reader = Reader()
    for _ in sys.stdin:
        reader.read()


class Reader:
    """Reads all GPUs, and says line by line how far it is."""

    def __init__(self) -> None:
        self._open = False

    def read(self) -> None:
        """Read every GPU once. After an error NVML is opened anew at the next reading."""
        try:
            self._read()
        except pynvml.NVMLError as error:
            _say({"end": {"trouble": TROUBLES.get(error.value, "failed"), "error": str(error)}})
            self._close()

    def _read(self) -> None:
        if not self._open:
            pynvml.nvmlInit()
            self._open = True
        driver = pynvml.nvmlSystemGetDriverVersion()
        for index in range(pynvml.nvmlDeviceGetCount()):
            _say({"begin": index})
            _say({"gpu": _gpu(index)})
        _say({"end": {"trouble": "", "driver": driver}})

    def _close(self) -> None:
        if self._open:
            self._open = False
            pynvml.nvmlShutdown()


def _gpu(index: int) -> dict[str, Any]:
    reading: dict[str, Any] = {"index": index, "ok": True, "error": None, "lost": False, "unsupported": []}
    reading |= {"counts": {}, "counts_error": None}
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:
        return reading | {"ok": False, "error": str(error), "lost": _is_lost(error)}
    for names, ask in QUESTIONS:
        _ask(reading, names, ask, handle)
    for names, ask in COUNTS:
        _count(reading, names, ask, handle)
    return reading


def _ask(reading: dict[str, Any], names: tuple[str, ...], ask: Callable[[Any], tuple[Any, ...]], handle: Any) -> None:
    try:
        reading.update(zip(names, ask(handle), strict=True))
    except pynvml.NVMLError as error:
        reading.update(dict.fromkeys(names))
        if error.value in NOT_THERE:
            reading["unsupported"] += names
        else:
            reading.update(ok=False, error=f"{', '.join(names)}: {error}", lost=reading["lost"] or _is_lost(error))


def _count(reading: dict[str, Any], names: tuple[str, ...], ask: Callable[[Any], tuple[Any, ...]], handle: Any) -> None:
    """Read what may be missing without making the GPU unreadable: many models, and all of them under MIG, lack some."""
    if reading["lost"]:
        return
    try:
        reading["counts"].update(zip(names, ask(handle), strict=True))
    except pynvml.NVMLError as error:
        if error.value in NOT_THERE:
            return
        reading["counts"].update(dict.fromkeys(names))
        reading["counts_error"] = reading["counts_error"] or f"{', '.join(names)}: {error}"
        if _is_lost(error):
            reading.update(ok=False, error=str(error), lost=True)


def _is_lost(error: pynvml.NVMLError) -> bool:
    return bool(error.value == pynvml.NVML_ERROR_GPU_IS_LOST)


def _recovery_action(handle: Any) -> tuple[int]:
    value = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(value.nvmlReturn)
    return (int(value.value.uiVal),)


def _remapped_rows(handle: Any) -> tuple[bool, bool]:
    _, _, pending, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
    return bool(pending), bool(failed)


QUESTIONS: Final[tuple[tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]], ...]] = (
    (("uuid",), lambda handle: (pynvml.nvmlDeviceGetUUID(handle),)),
    (("pci",), lambda handle: (pynvml.nvmlDeviceGetPciInfo(handle).busId,)),
    (("serial",), lambda handle: (pynvml.nvmlDeviceGetSerial(handle),)),
    (("name",), lambda handle: (pynvml.nvmlDeviceGetName(handle),)),
    (("recovery_action",), _recovery_action),
    (("remap_pending", "remap_failed"), _remapped_rows),
    (("reasons",), lambda handle: (pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),)),
    (("temperature",), lambda handle: (pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),)),
    (("utilisation",), lambda handle: (int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),)),
    (("power_limit",), lambda handle: (round(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),)),
)


VOLATILE, AGGREGATE = pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC
CORRECTED, UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
SINGLE_BIT = pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
DOUBLE_BIT = pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR


def _total(kind: int, counter: int) -> Callable[[Any], tuple[int]]:
    return lambda handle: (int(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter)),)


def _uncorrected_in(place: int, counter: int) -> Callable[[Any], tuple[int]]:
    return lambda handle: (int(pynvml.nvmlDeviceGetMemoryErrorCounter(handle, UNCORRECTED, counter, place)),)


def _sram_threshold(handle: Any) -> tuple[int]:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return (int(status.bThresholdExceeded),)


def _remaps(handle: Any) -> tuple[int, int]:
    corrected, uncorrected, _, _ = pynvml.nvmlDeviceGetRemappedRows(handle)
    return int(corrected), int(uncorrected)


def _spare_rows(handle: Any) -> tuple[int, ...]:
    banks = pynvml.nvmlDeviceGetRowRemapperHistogram(handle)
    return tuple(int(each) for each in (banks.max, banks.high, banks.partial, banks.low, banks.none))


def _retired(cause: int) -> Callable[[Any], tuple[int]]:
    return lambda handle: (len(pynvml.nvmlDeviceGetRetiredPages(handle, cause)),)


COUNTS: Final[tuple[tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]], ...]] = (
    (("volatile_corrected",), _total(CORRECTED, VOLATILE)),
    (("volatile_uncorrected",), _total(UNCORRECTED, VOLATILE)),
    (("aggregate_corrected",), _total(CORRECTED, AGGREGATE)),
    (("aggregate_uncorrected",), _total(UNCORRECTED, AGGREGATE)),
    (("volatile_uncorrected_dram",), _uncorrected_in(pynvml.NVML_MEMORY_LOCATION_DRAM, VOLATILE)),
    (("volatile_uncorrected_sram",), _uncorrected_in(pynvml.NVML_MEMORY_LOCATION_SRAM, VOLATILE)),
    (("aggregate_uncorrected_dram",), _uncorrected_in(pynvml.NVML_MEMORY_LOCATION_DRAM, AGGREGATE)),
    (("aggregate_uncorrected_sram",), _uncorrected_in(pynvml.NVML_MEMORY_LOCATION_SRAM, AGGREGATE)),
    (("sram_threshold",), _sram_threshold),
    (("remapped_corrected", "remapped_uncorrected"), _remaps),
    (("banks_max", "banks_high", "banks_partial", "banks_low", "banks_none"), _spare_rows),
    (("retired_single_bit",), _retired(SINGLE_BIT)),
    (("retired_double_bit",), _retired(DOUBLE_BIT)),
    (("retirement_pending",), lambda handle: (int(pynvml.nvmlDeviceGetRetiredPagesPendingStatus(handle)),)),
)
"""What a GPU counts of its memory. Volatile counts begin at the load of the driver, aggregate ones with the board;
banks are by how many spare rows they have left; retired pages are the remapped rows of boards before Ampere."""


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
