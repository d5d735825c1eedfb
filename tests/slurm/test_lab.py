"""The Slurm in a folder: it starts, says so, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.domain.errors import Unreachable
from daytwo.lab import slurm_lab
from daytwo.lab.slurm_config import LabSettings
from daytwo.schedulers.slurm import SlurmScheduler
from tests.slurm.conftest import CLUSTER, MakeLab


@pytest.fixture
def process(make_lab: MakeLab, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A lab as its own process, just ready."""
    argv = [sys.executable, "-m", "daytwo.lab.slurm_lab", str(tmp_path / "lab"), "--nodes", "2", "--prefix", "proc-"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        yield child
        child.kill()


def daemons_of(folder: Path) -> list[str]:
    """The command lines of the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in os.readlink(process / "cwd"):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def gone(folder: Path) -> bool:
    end = time.monotonic() + 10
    while daemons_of(folder) and time.monotonic() < end:
        time.sleep(0.05)
    return not daemons_of(folder)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["told to stop", "killed"])
def test_a_lab_says_when_it_is_ready_and_takes_its_daemons_with_it(
    process: subprocess.Popen[str], tmp_path: Path, how: signal.Signals
) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"ready SLURM_CONF={tmp_path}/lab/etc/slurm.conf\n"
    assert len(daemons_of(tmp_path)) >= 4
    process.send_signal(how)
    assert (process.wait(10), gone(tmp_path)) == (0 if how is signal.SIGTERM else -how, True)


def test_a_machine_without_slurm_is_told_what_to_install(tmp_path: Path) -> None:
    said = slurm_lab.missing(str(tmp_path))
    assert "slurmctld" in said
    assert "apt-get install --no-install-recommends slurmctld slurmd" in said


async def test_a_slurm_whose_controller_is_gone_is_unreachable(make_lab: MakeLab) -> None:
    lab = make_lab(LabSettings(nodes=("lone-1",), gpus=1))
    lab.stop()
    with pytest.raises(Unreachable):
        await SlurmScheduler(lab.access, CLUSTER).facts()
