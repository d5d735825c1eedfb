"""`make demo ARGS=--auto`, both ways, as a newcomer runs it: real processes, from an empty folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from daytwo.lab.slurm_lab import missing
from tests.house.running import processes_of, wait_for

DEMO = [sys.executable, "-m", "daytwo.lab.demo"]


def play(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DEMO, *options], cwd=folder, capture_output=True, text=True, check=False, timeout=280)


@pytest.mark.timeout(300)
def test_on_the_simulated_fleet_the_node_returns(tmp_path: Path) -> None:
    done = play(tmp_path, "--auto")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is healthy again and carries no mark of ours" in done.stdout


@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_on_a_real_slurm_the_node_returns(tmp_path: Path) -> None:
    done = play(tmp_path, "--slurm", "--auto")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is healthy again and carries no mark of ours: idle" in done.stdout


def test_ctrl_c_ends_the_demo_and_everything_it_started(tmp_path: Path) -> None:
    with subprocess.Popen(DEMO, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        wait_for(lambda: (tmp_path / ".daytwo/demo/up.json").exists())
        demo.send_signal(signal.SIGINT)
        output, _ = demo.communicate(timeout=60)
    assert (demo.returncode, "stopped" in output) == (130, True)
    assert processes_of(tmp_path) == []
