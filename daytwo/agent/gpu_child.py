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
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:
        return reading | {"ok": False, "error": str(error), "lost": _is_lost(error)}
    for names, ask in QUESTIONS:
        _ask(reading, names, ask, handle)
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
)


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
