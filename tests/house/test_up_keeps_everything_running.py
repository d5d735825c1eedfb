"""`daytwo up` as a process: one at a time, its parts come back, and nothing is left when it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.house.running import processes_of, wait_for

UP = [sys.executable, "-m", "daytwo.cli.main", "up", "--any-port"]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up")


@pytest.fixture(scope="module")
def running(state: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(UP, env=environment(state), stderr=subprocess.PIPE, text=True) as up:
        try:
            wait_for((state / "up.json").exists)
            yield up
        finally:
            up.terminate()


def environment(state: Path) -> dict[str, str]:
    return {**os.environ, "DAYTWO_STATE_DIR": str(state)}


def test_a_second_one_on_the_same_folder_is_refused(running: subprocess.Popen[str], state: Path) -> None:
    done = subprocess.run(UP, env=environment(state), capture_output=True, text=True, check=False)
    assert (done.returncode, f"already up on {state} (process {running.pid})" in done.stderr) == (4, True)


@pytest.mark.usefixtures("running")
def test_a_gateway_that_is_killed_comes_back(state: Path) -> None:
    url = json.loads((state / "up.json").read_text())["gateway_url"]
    (first,) = processes_of(state, "workers.gateway")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: processes_of(state, "workers.gateway") not in ([], [first]))
    wait_for(lambda: answers(f"{url}/readyz"))


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False


def test_nothing_is_left_when_it_ends(running: subprocess.Popen[str], state: Path) -> None:
    running.terminate()
    assert (running.wait(60), processes_of(state)) == (0, [])
