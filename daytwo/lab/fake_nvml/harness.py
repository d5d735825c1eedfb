"""Builds the library in fake_nvml.c and edits its state while a program that loaded it runs.

    library = build(cache_folder)                       needs gcc; compiles once per content
    fake = FakeNvml(folder / "gpus", gpus=8)
    subprocess.Popen(agent, env=os.environ | fake.environment(library))
    fake.lose(3)

The structures are those of fake_nvml.c; a test compares the sizes.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

SOURCE: Final = Path(__file__).with_name("fake_nvml.c")
SONAME: Final = "libnvidia-ml.so.1"
MAX_GPUS: Final = 16
MAX_FAULTS: Final = 32
MAGIC: Final = 0x44415932

GPU_IS_LOST: Final = 15
CORRECTED, UNCORRECTED = 0, 1
VOLATILE, AGGREGATE = 0, 1
DRAM, SRAM = 2, 7


class CompilerMissing(Exception):
    """There is no gcc, so the library cannot be built."""


class Gpu(ctypes.Structure):
    """One GPU as the library tells it; every field may be changed at any time."""

    _fields_ = [
        ("name", ctypes.c_char * 96),
        ("uuid", ctypes.c_char * 80),
        ("serial", ctypes.c_char * 32),
        ("bus_id", ctypes.c_char * 32),
        ("lost", ctypes.c_uint32),
        ("recovery_action", ctypes.c_uint32),
        ("remap_pending", ctypes.c_uint32),
        ("remap_failed", ctypes.c_uint32),
        ("clock_event_reasons", ctypes.c_uint64),
        ("ecc", ctypes.c_uint64 * 8 * 2 * 2),
        ("remapped", ctypes.c_uint32 * 2),
        ("banks", ctypes.c_uint32 * 5),
        ("retired", ctypes.c_uint32 * 2),
        ("retirement_pending", ctypes.c_uint32),
        ("sram_threshold", ctypes.c_uint32),
        ("temperature", ctypes.c_uint32),
        ("utilisation", ctypes.c_uint32),
        ("power_limit", ctypes.c_uint32),
    ]


class _Fault(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_char * 64),
        ("gpu", ctypes.c_int32),
        ("result", ctypes.c_uint32),
        ("delay_ms", ctypes.c_uint32),
        ("left", ctypes.c_int32),
    ]


class State(ctypes.Structure):
    """The whole state file."""

    _fields_ = [
        ("magic", ctypes.c_uint32),
        ("gpu_count", ctypes.c_uint32),
        ("fault_count", ctypes.c_uint32),
        ("calls", ctypes.c_uint32),
        ("driver", ctypes.c_char * 80),
        ("gpus", Gpu * MAX_GPUS),
        ("faults", _Fault * MAX_FAULTS),
    ]


def build(cache: Path) -> Path:
    """Return the compiled library, from `cache` if this source was compiled there before. Raises `CompilerMissing`."""
    folder = cache / hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    library = folder / SONAME
    if library.exists():
        return library
    if shutil.which("gcc") is None:
        raise CompilerMissing("gcc is needed to build the NVML stand-in (Debian package gcc)")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{os.getpid()}"
    arguments = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-Wl,-soname,{SONAME}"]
    subprocess.run(["gcc", *arguments, "-o", str(made), str(SOURCE)], check=True)
    made.replace(library)
    return library


class FakeNvml:
    """The GPUs of one machine, in the state file `path`. The file stays when the object goes."""

    def __init__(self, path: Path, gpus: int = 8) -> None:
        path.write_bytes(bytes(ctypes.sizeof(State)))
        self.path = path
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), ctypes.sizeof(State))
        self.state = State.from_buffer(self._map)
        self.state.driver = b"580.95.05"
        for index in range(gpus):
            self._set_up(self.state.gpus[index], index)
        self.state.gpu_count = gpus
        self.state.magic = MAGIC

    def environment(self, library: Path) -> dict[str, str]:
        """Return what a program needs in its environment when it starts."""
        return {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(self.path)}

    def gpu(self, index: int) -> Any:
        """Return one GPU (`Gpu`), to be read or changed in place."""
        return self.state.gpus[index]

    def uuid(self, index: int) -> str:
        """Return the UUID of one GPU."""
        return bytes(self.gpu(index).uuid).decode()

    def lose(self, index: int) -> None:
        """Every call about this GPU now answers that it is lost."""
        self.gpu(index).lost = 1

    def find(self, index: int) -> None:
        """The GPU answers again."""
        self.gpu(index).lost = 0

    def uncorrectable(self, index: int, times: int, place: int = DRAM) -> None:
        """The GPU's memory returned data that could not be corrected, in the place that nvml.h numbers so."""
        for counter in (VOLATILE, AGGREGATE):
            self.gpu(index).ecc[UNCORRECTED][counter][0] += times
            self.gpu(index).ecc[UNCORRECTED][counter][place] += times

    def inject(self, function: str, *, result: int = 0, gpu: int = -1, delay_ms: int = 0, times: int = -1) -> None:
        """Let the next calls of an NVML function (`times`, or all) fail with `result`, after `delay_ms`."""
        fault = self.state.faults[self.state.fault_count]
        fault.function, fault.gpu, fault.result = function.encode(), gpu, result
        fault.delay_ms, fault.left = delay_ms, times
        self.state.fault_count += 1

    def heal(self) -> None:
        """Take back everything that was injected."""
        self.state.fault_count = 0

    @staticmethod
    def _set_up(gpu: Any, index: int) -> None:
        gpu.name = b"NVIDIA H100 80GB HBM3"
        gpu.uuid = f"GPU-00000000-0000-0000-0000-{index:012d}".encode()
        gpu.serial = f"16{index:011d}".encode()
        gpu.banks[0] = 2560
        gpu.temperature, gpu.utilisation, gpu.power_limit = 34, 0, 700_000
        gpu.bus_id = f"00000000:{0x1A + index:02X}:00.0".encode()
