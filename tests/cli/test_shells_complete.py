"""`daytwo completion`, `policy explain` and `nodes token --revoke`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from daytwo.cli.main import run
from tests.cli.conftest import Cli


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_daytwo(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_DAYTWO_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "word", "offered"),
    [
        ("daytwo rep", "1", "repairs"),
        ("daytwo repairs ap", "2", "approve"),
        ("daytwo repairs approve --mo", "3", "--moment"),
    ],
)
def test_commands_and_options_are_completed(words: str, word: str, offered: str) -> None:
    asked = {"_DAYTWO_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": word}
    command = [sys.executable, "-m", "daytwo.cli.main"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert done.stdout == f"plain,{offered}\n"


def test_a_rule_is_explained_with_where_each_value_comes_from(cli: Cli) -> None:
    done = cli("policy", "explain", "xid-79")
    assert done.code == 0
    assert "action            reboot                   catalogue" in done.out
    assert "approved by anybody with the role lead or operator" in done.out


def test_tokens_are_revoked_by_those_who_may(cli: Cli) -> None:
    done = cli("nodes", "token", "gpu-07", "--revoke")
    assert (done.code, done.out) == (0, "0 tokens of east/gpu-07 are worthless now\n")
