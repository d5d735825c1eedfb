"""What works, and how it fails, when no service answers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from daytwo.agent import main as agent
from daytwo.cli.processes import AGENT_OPTIONS
from daytwo.lab.main import main as lab
from daytwo.one_at_a_time import only_one
from tests.cli.conftest import Cli, runner

ROOT = Path(__file__).parents[2]
DEFINITION = """\
name: east
kind: simulated
simulated_socket: /run/daytwo/lab.sock
groups:
  - nodes: ["gpu-[01-16]"]
    gpus: 8
    domains: [rack-1]
    survives_reboot: {/local: true}
policy:
  faults:
    xid-48: {mode: auto}
"""


# httpcore leaves the socket of a failed connection to the garbage collector.
FORGOTTEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@pytest.fixture
def alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return runner(tmp_path / "nobody", capfd)


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    file = tmp_path / "east.yaml"
    file.write_text(DEFINITION)
    return file


@FORGOTTEN
def test_a_service_that_is_not_there_is_unreachable(alone: Cli) -> None:
    done = alone("repairs", "list")
    assert (done.code, done.out) == (7, "")
    assert "There is no such socket." in done.err


@FORGOTTEN
@pytest.mark.parametrize("up", [True, False])
def test_a_plane_that_is_up_without_its_socket_is_not_to_be_started(
    tmp_path: Path, alone: Cli, monkeypatch: pytest.MonkeyPatch, up: bool
) -> None:
    for name, path in (("STATE_DIR", tmp_path), ("SERVICE_SOCKET", tmp_path / "nobody")):
        monkeypatch.setenv(f"DAYTWO_{name}", str(path))
    with only_one(tmp_path) if up else nullcontext():
        said = alone("repairs", "list").err
    told = f"daytwo is up on {tmp_path} (process {os.getpid()})"
    assert (told in said, "Next: daytwo up" in said) == (up, not up)


@FORGOTTEN
def test_a_socket_that_nobody_serves_is_unreachable(tmp_path: Path, alone: Cli) -> None:
    (tmp_path / "nobody").write_text("")
    assert alone("repairs", "list").code == 7


def test_a_definition_is_checked(alone: Cli, definition: Path) -> None:
    done = alone("clusters", "check", str(definition))
    assert (done.code, done.out) == (0, f"{definition}: cluster east (simulated), 16 nodes: 16 in pool default\n")


def test_a_policy_is_shown_with_what_it_sets(alone: Cli, definition: Path) -> None:
    done = alone("policy", "check", str(definition))
    line = next(line for line in done.out.splitlines() if line.startswith("xid-48 "))
    assert ("auto" in line, "mode (fault rule)" in line) == (True, True)


def test_steps_that_no_driver_carries_out_are_marked(alone: Cli, definition: Path) -> None:
    definition.write_text(DEFINITION.replace("kind: simulated\nsimulated_socket: /run/daytwo/lab.sock", "kind: slurm"))
    done = alone("policy", "check", str(definition), "-o", "json")
    rules = {rule["fault"]: rule for rule in json.loads(done.out)}
    would = "`bmcs`, or a program in `hardware` with power-cycle among its `acts`"
    never = dict.fromkeys(("reset-gpu", "failover"), "no driver of this version")
    assert rules["xid-48"]["skipped"] == {"power-cycle": would, **never}
    assert "power-cycle: no driver does it, so ladders go past it; allowed is `bmcs`" in done.err


@pytest.mark.parametrize("command", [("clusters", "check"), ("clusters", "apply"), ("policy", "check")])
def test_a_slip_is_named_by_file_line_and_field(alone: Cli, definition: Path, command: tuple[str, ...]) -> None:
    definition.write_text(DEFINITION.replace("mode: auto", "mode: maybe"))
    done = alone(*command, str(definition))
    assert (done.code, done.out) == (2, "")
    assert f"{definition}:11: policy.faults.xid-48.mode: found 'maybe', allowed: " in done.err


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"- a\n- b\n", b"name: [", b"name: east\nkind: cloud\n"])
def test_a_malformed_file_is_bad_input_and_not_a_traceback(alone: Cli, definition: Path, content: bytes) -> None:
    definition.write_bytes(content)
    done = alone("clusters", "check", str(definition))
    assert (done.code, str(definition) in done.err, "Traceback" in done.err) == (2, True, False)


def test_a_bad_definition_says_that_the_input_breaks_a_rule(alone: Cli, definition: Path) -> None:
    definition.write_text("kind: slurm\n")
    err = alone("clusters", "check", str(definition)).err
    assert "Why:  The input breaks a rule." in err


@pytest.mark.parametrize("kind", ["kubernetes", "slurm-on-kubernetes"])
@pytest.mark.parametrize("command", ["check", "apply"])
def test_a_kind_that_this_version_does_not_serve_is_refused(
    alone: Cli, definition: Path, command: str, kind: str
) -> None:
    definition.write_text(DEFINITION.replace("kind: simulated", f"kind: {kind}"))
    done = alone("clusters", command, str(definition))
    assert (done.code, f"kind: found '{kind}', allowed: slurm or simulated" in done.err) == (2, True)


def test_a_file_that_is_not_there_is_a_usage_error(alone: Cli) -> None:
    assert alone("clusters", "check", "nowhere.yaml").code == 2


def test_a_setting_that_is_malformed_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    environment = {**os.environ, "DAYTWO_STATE_DIR": "here"}
    command = [sys.executable, "-m", "daytwo.cli.main", "repairs", "list"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "DAYTWO_STATE_DIR: found 'here'" in done.stderr) == (2, True)


def test_a_lab_that_is_not_there_is_unreachable(alone: Cli, tmp_path: Path) -> None:
    done = alone("lab", "break", "node-01", "xid-79", "--lab-socket", str(tmp_path / "nobody"))
    assert (done.code, "daytwo lab up" in done.err) == (7, True)


def test_help_topics_are_printed(alone: Cli) -> None:
    assert "130  Stopped by Ctrl-C." in alone("help", "exit-codes").out


@pytest.mark.parametrize(
    "words", [("nodez",), ("repairs", "approove"), ("--no-such",), ("repairs", "list", "-o", "xml")]
)
def test_wrong_usage_is_exit_code_two(alone: Cli, words: tuple[str, ...]) -> None:
    assert alone(*words).code == 2


def test_wrong_usage_is_what_why_and_next(alone: Cli) -> None:
    lines = alone("repairs", "list", "--limit", "many").err.splitlines()
    assert [line.split()[0] for line in lines] == ["Error:", "Why:", "Next:"]
    assert "allowed is a whole number from 1 to 1000" in lines[0]


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        ("--speed", "a number from 1"),
        ("--ui-port", "a whole number from 1 to 65535"),
        ("--lab", "a whole number from 1 to 2000"),
    ],
)
def test_a_number_that_is_none_is_told_in_plain_words(alone: Cli, option: str, allowed: str) -> None:
    done = alone("up", option, "fast")
    assert (done.code, f"found 'fast'; allowed is {allowed}" in done.err) == (2, True)


def test_the_help_of_the_agent_lists_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        agent.parse(["--help"], {})
    assert set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"} == set(
        re.findall(r"--[a-z-]+", AGENT_OPTIONS)
    )


def test_the_help_of_the_lab_lists_its_options(alone: Cli) -> None:
    shown = alone("lab", "up", "--help").out
    assert [option for param in lab.params for option in param.opts if option not in shown] == ["--socket"]


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"{sys.executable} -m daytwo.cli.main help environment | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_ctrl_c_is_exit_code_130(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        command = [sys.executable, "-m", "daytwo.cli.main", "--socket", str(tmp_path / "s"), "nodes", "list"]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process:
            asked, _ = silent.accept()
            with asked:
                asked.recv(1)
                process.send_signal(signal.SIGINT)
                assert process.wait() == 130
