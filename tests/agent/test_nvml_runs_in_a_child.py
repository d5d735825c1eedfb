"""The real child process, with the library that pretends to be NVML."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from daytwo.agent.gpus import COMMAND, Child, NvmlGpus
from daytwo.lab.fake_nvml.harness import GPU_IS_LOST, SRAM, FakeNvml, State
from tests.agent.processes import until


@pytest.fixture
def child(nvml_library: Path, fake_nvml: FakeNvml) -> Iterator[Child]:
    child = Child(with_environment(fake_nvml.environment(nvml_library)))
    yield child
    child.kill()


def with_environment(environment: dict[str, str]) -> tuple[str, ...]:
    return ("env", *(f"{name}={value}" for name, value in environment.items()), *COMMAND)


def test_the_structures_are_those_of_the_library_and_of_the_bindings(nvml_library: Path) -> None:
    library = ctypes.CDLL(str(nvml_library))
    bindings: Any = pynvml
    pairs = {
        "fake_nvml_state_size": State,
        "fake_nvml_field_size": bindings.c_nvmlFieldValue_t,
        "fake_nvml_pci_size": bindings.nvmlPciInfo_t,
        "fake_nvml_sram_size": bindings.c_nvmlEccSramErrorStatus_v1_t,
    }
    for name, structure in pairs.items():
        assert getattr(library, name)() == ctypes.sizeof(structure), name


def test_a_reading_tells_everything_of_each_gpu(child: Child, fake_nvml: FakeNvml) -> None:
    fake_nvml.gpu(1).recovery_action = 2
    fake_nvml.gpu(1).remap_pending = 1
    fake_nvml.gpu(1).clock_event_reasons = 0x40
    report = child.read(5.0)
    gpu = report.gpus[1]
    assert (report.trouble, report.driver, len(report.gpus)) == ("", "580.95.05", 2)
    assert (gpu.uuid, gpu.pci, gpu.name) == (fake_nvml.uuid(1), "0000:1b:00", "NVIDIA H100 80GB HBM3")
    assert (gpu.recovery_action, gpu.remap_pending, gpu.remap_failed, gpu.reasons) == (2, True, False, 0x40)


def test_a_reading_tells_how_each_gpu_is_under_load(child: Child, fake_nvml: FakeNvml) -> None:
    gpu = fake_nvml.gpu(1)
    gpu.temperature, gpu.utilisation, gpu.power_limit = 71, 98, 499_600
    told = child.read(5.0).gpus[1]
    assert (told.temperature, told.utilisation, told.power_limit) == (71, 98, 500)


@pytest.mark.parametrize(
    ("result", "lacks"), [(pynvml.NVML_ERROR_NOT_SUPPORTED, True), (pynvml.NVML_ERROR_UNKNOWN, False)]
)
def test_a_load_that_no_device_has_is_told_apart_from_one_that_fails(
    child: Child, fake_nvml: FakeNvml, result: int, lacks: bool
) -> None:
    fake_nvml.inject("nvmlDeviceGetUtilizationRates", result=result, gpu=1)
    gpu = child.read(5.0).gpus[1]
    assert (gpu.utilisation, "utilisation" in gpu.unsupported, gpu.ok) == (None, lacks, lacks)


def test_a_reading_tells_what_each_gpu_counts_of_its_memory(child: Child, fake_nvml: FakeNvml) -> None:
    gpu = fake_nvml.gpu(1)
    fake_nvml.uncorrectable(1, 3)
    fake_nvml.uncorrectable(1, 1, SRAM)
    gpu.remapped[1], gpu.banks[4], gpu.retired[1], gpu.retirement_pending, gpu.sram_threshold = 2, 1, 5, 1, 1
    counts = child.read(5.0).gpus[1].counts
    assert {name: count for name, count in counts.items() if count} == {
        "volatile_uncorrected": 4,
        "aggregate_uncorrected": 4,
        "volatile_uncorrected_dram": 3,
        "volatile_uncorrected_sram": 1,
        "aggregate_uncorrected_dram": 3,
        "aggregate_uncorrected_sram": 1,
        "sram_threshold": 1,
        "remapped_uncorrected": 2,
        "banks_max": 2560,
        "banks_none": 1,
        "retired_double_bit": 5,
        "retirement_pending": 1,
    }


@pytest.mark.parametrize("result", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND])
def test_what_a_device_does_not_count_is_not_there(child: Child, fake_nvml: FakeNvml, result: int) -> None:
    fake_nvml.inject("nvmlDeviceGetTotalEccErrors", result=result)
    gpu = child.read(5.0).gpus[0]
    assert (gpu.ok, "volatile_uncorrected" in gpu.counts, gpu.counts_error) == (True, False, None)


def test_a_count_that_fails_is_missing_and_does_not_make_the_gpu_unreadable(child: Child, fake_nvml: FakeNvml) -> None:
    fake_nvml.inject("nvmlDeviceGetRowRemapperHistogram", result=pynvml.NVML_ERROR_UNKNOWN, gpu=0)
    gpu = child.read(5.0).gpus[0]
    assert (gpu.ok, gpu.counts["banks_none"]) == (True, None)
    assert gpu.counts_error == "banks_max, banks_high, banks_partial, banks_low, banks_none: Unknown Error"


def test_a_gpu_that_is_lost_while_it_is_counted_is_lost(child: Child, fake_nvml: FakeNvml) -> None:
    fake_nvml.inject("nvmlDeviceGetRetiredPages", result=GPU_IS_LOST, gpu=0)
    assert [(gpu.lost, gpu.ok) for gpu in child.read(5.0).gpus] == [(True, False), (False, True)]


def test_a_lost_gpu_is_told_from_one_that_answers(child: Child, fake_nvml: FakeNvml) -> None:
    child.read(5.0)
    fake_nvml.lose(0)
    assert [(gpu.lost, gpu.ok) for gpu in child.read(5.0).gpus] == [(True, False), (False, True)]


@pytest.mark.parametrize("result", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND])
def test_what_a_device_does_not_have_is_unsupported(child: Child, fake_nvml: FakeNvml, result: int) -> None:
    fake_nvml.inject("nvmlDeviceGetRemappedRows", result=result)
    gpu = child.read(5.0).gpus[0]
    assert (gpu.ok, gpu.unsupported) == (True, ("remap_pending", "remap_failed"))


def test_a_reading_that_fails_is_not_unsupported(child: Child, fake_nvml: FakeNvml) -> None:
    fake_nvml.inject("nvmlDeviceGetFieldValues", result=pynvml.NVML_ERROR_UNKNOWN, gpu=0)
    gpu = child.read(5.0).gpus[0]
    assert (gpu.ok, gpu.error, gpu.unsupported) == (False, "recovery_action: Unknown Error", ())


def test_a_call_that_hangs_is_ended_at_the_deadline_and_names_the_gpu(child: Child, fake_nvml: FakeNvml) -> None:
    child.read(5.0)
    fake_nvml.inject("nvmlDeviceGetSerial", gpu=1, delay_ms=60_000)
    began = time.monotonic()
    report = child.read(0.3)
    assert (report.trouble, report.error) == (
        "hung",
        "NVML did not answer in 0.3 s; it was asked about the GPU with index 1",
    )
    assert time.monotonic() - began < 1.0


def test_after_a_hang_a_new_child_reads(child: Child, fake_nvml: FakeNvml) -> None:
    fake_nvml.inject("nvmlDeviceGetSerial", delay_ms=60_000, times=1)
    child.read(0.3)
    assert child.read(5.0).trouble == ""


def test_an_error_of_the_library_is_told_and_it_is_opened_again(child: Child, fake_nvml: FakeNvml) -> None:
    fake_nvml.inject("nvmlDeviceGetCount_v2", result=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, times=1)
    report = child.read(5.0)
    assert (report.trouble, report.error) == ("failed", "RM has detected an NVML/RM version mismatch.")
    assert child.read(5.0).trouble == ""


def test_without_a_driver_it_says_so(nvml_library: Path) -> None:
    child = Child(with_environment({"LD_LIBRARY_PATH": str(nvml_library.parent), "FAKE_NVML_STATE": "/nowhere"}))
    assert child.read(5.0).trouble == "no-driver"
    child.kill()


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a driver")
def test_without_a_library_it_says_so() -> None:
    child = Child()
    assert child.read(5.0).trouble in ("no-library", "no-driver")
    child.kill()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("", "ended with status 0"),
        ("print('nonsense')", "Expecting value"),
        ("print('[1]')", "failed"),
        ("raise SystemExit(3)", "status 3"),
        ("import os, time; os.close(1); time.sleep(60)", "does not end"),
    ],
)
def test_a_child_that_ends_or_speaks_nonsense_is_trouble(program: str, said: str) -> None:
    report = Child((sys.executable, "-c", f"input(); {program}")).read(5.0)
    assert report.trouble == "failed"
    assert said in str(report.error)


def test_a_child_that_cannot_be_started_is_trouble() -> None:
    assert Child(("/nowhere/python",)).read(5.0).trouble == "failed"


def test_a_child_that_died_meanwhile_is_replaced(child: Child) -> None:
    child.read(5.0)
    child.signal()
    time.sleep(0.1)
    assert child.read(5.0).trouble == ""


class Unkillable(Child):
    """Its process ignores the kill, as one that sits in the kernel does, until `let_go`."""

    def kill(self) -> None:
        self._killed = self._process is not None

    def let_go(self) -> None:
        super().kill()


def test_a_child_that_cannot_be_killed_is_not_joined_by_another() -> None:
    stuck = "the last NVML process hangs in the kernel and cannot be killed"
    child = Unkillable((sys.executable, "-c", "import time; time.sleep(60)"))
    errors = [child.read(0.1).error, child.read(0.1).error]
    child.let_go()
    errors.append(child.read(0.1).error)
    child.let_go()
    assert [error == stuck for error in errors] == [False, True, False]


PARENT = """
import time
from daytwo.agent.gpus import Child
child = Child()
child.read(5.0)
print(child._process.pid, flush=True)
time.sleep(60)
"""


def test_the_child_dies_with_its_parent(nvml_library: Path, fake_nvml: FakeNvml) -> None:
    environment = os.environ | fake_nvml.environment(nvml_library)
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        status = Path(f"/proc/{int(parent.stdout.readline())}/stat")
        parent.send_signal(signal.SIGKILL)
    # Where nobody reaps orphans it stays as a zombie.
    until(lambda: not status.exists() or status.read_text().split()[2] == "Z")


def test_a_report_is_collected_once(nvml_library: Path, fake_nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fake_nvml.environment(nvml_library).items():
        monkeypatch.setenv(name, value)
    gpus = NvmlGpus(lambda: None)
    gpus.ask(5.0)
    report = until(gpus.collect)
    assert (len(report.gpus), gpus.collect()) == (2, None)
    gpus.close()
