"""What the environment may say, and what a wrong variable is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from daytwo import settings
from daytwo.agent import main as agent
from daytwo.domain.errors import BadInput

ROOT = Path(__file__).parents[2]
VARIABLE = re.compile(r"\bDAYTWO_(?!TEST_)[A-Z]+(?:_[A-Z]+)*\b")
PACKAGES = ("daytwo", "workflows", "activities", "workers", "deploy")


def test_everything_follows_from_the_state_folder() -> None:
    found = settings.load({"DAYTWO_STATE_DIR": "/srv/daytwo"})
    assert (found.store_url, str(found.service_socket)) == (
        "sqlite:////srv/daytwo/daytwo.db",
        "/srv/daytwo/service.sock",
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DAYTWO_STATE_DIR", "here", "DAYTWO_STATE_DIR: found 'here'; allowed is an absolute path"),
        (
            "DAYTWO_GATEWAY_URL",
            "ftp://g",
            "DAYTWO_GATEWAY_URL: found a URL of scheme 'ftp'; allowed is one that starts with http",
        ),
        ("DAYTWO_STORE_URL", "mysql://u:secret@h/d", "DAYTWO_STORE_URL: found a URL of scheme 'mysql'"),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(name: str, value: str, says: str) -> None:
    with pytest.raises(BadInput) as problem:
        settings.load({name: value})
    assert str(problem.value).startswith(says)
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("value", ["soon", "0", "-1", "inf", "99999"])
def test_a_duration_that_makes_no_sense_is_refused(value: str) -> None:
    with pytest.raises(BadInput, match="DAYTWO_SEND_SECONDS"):
        settings.seconds("DAYTWO_SEND_SECONDS", 10.0, {"DAYTWO_SEND_SECONDS": value})


@pytest.fixture(scope="module")
def told() -> set[str]:
    """The variables that `daytwo help environment` explains."""
    command = [sys.executable, "-m", "daytwo.cli.main", "help", "environment"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=dict(os.environ))
    rows = [re.split(r"  +", line, maxsplit=1) for line in done.stdout.splitlines()]
    assert all(len(row) == 2 and row[1] for row in rows)
    return {name for name, _ in rows}


def test_every_variable_in_the_code_is_explained(told: set[str]) -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    texts = [path.read_text() for path in files if path.suffix in (".py", ".service", ".conf", ".md")]
    named = {name for text in texts for name in VARIABLE.findall(text)}
    assert len(named) > 12
    assert named - told == set()


def test_every_option_of_the_agent_is_explained_as_a_variable(
    told: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        agent.parse(["--help"], {})
    options = set(re.findall(r"--([a-z-]+)", capsys.readouterr().out)) - {"help", "version", "accept-user-records"}
    assert {f"{agent.PREFIX}{name.upper().replace('-', '_')}" for name in options} <= told


def test_a_variable_that_is_not_in_the_table_is_not_read() -> None:
    with pytest.raises(LookupError, match="DAYTWO_SEND_MINUTES"):
        settings.whole("DAYTWO_SEND_MINUTES", 1, {"DAYTWO_SEND_MINUTES": "7"})
