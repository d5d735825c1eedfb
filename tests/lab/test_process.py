"""The lab as a process: its options, its line when it is ready, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from daytwo.lab.client import LabClient
from daytwo.lab.main import main


@pytest.fixture
def process(socket_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A lab of four nodes that has said that it is ready."""
    command = [sys.executable, "-m", "daytwo.lab", "--socket", str(socket_path), "--nodes", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline().startswith("lab ready: 4 nodes")
        yield started
        started.kill()


def test_a_lab_that_is_ready_serves_its_user_and_ends_on_sigterm(
    process: subprocess.Popen[str], socket_path: Path
) -> None:
    assert len(LabClient(str(socket_path)).status()["nodes"]) == 4
    assert socket_path.stat().st_mode & 0o777 == 0o600
    process.send_signal(signal.SIGTERM)
    assert (process.wait(10), socket_path.exists()) == (0, False)


def test_a_socket_that_was_deleted_is_there_again_and_the_fleet_is_as_it_was(
    process: subprocess.Popen[str], socket_path: Path
) -> None:
    LabClient(str(socket_path)).break_node("node-02", "xid-79")
    socket_path.unlink()
    give_up = time.monotonic() + 5
    while not socket_path.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    broken = [node["name"] for node in LabClient(str(socket_path)).status()["nodes"] if node["faults"]]
    process.send_signal(signal.SIGTERM)
    assert (broken, process.wait(10), socket_path.exists()) == (["node-02"], 0, False)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (None, "--tokens: found none"),
        ("{", "allowed is a JSON object from node names to tokens"),
        (json.dumps(["node-01"]), "found list; allowed is a JSON object"),
    ],
)
def test_tokens_that_cannot_be_read_are_named(
    socket_path: Path, tmp_path: Path, tokens: str | None, message: str
) -> None:
    options = ["--socket", str(socket_path), "--gateway", "http://127.0.0.1:9"]
    if tokens is not None:
        path = tmp_path / "tokens.json"
        path.write_text(tokens)
        options += ["--tokens", str(path)]
    ended = CliRunner().invoke(main, options)
    assert (ended.exit_code, message in ended.output) == (2, True)
