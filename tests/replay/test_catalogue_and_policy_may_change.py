"""An edited catalogue or policy breaks no open repair: what they say is asked of activities, and frozen in histories.

Each test replays all histories in a process of its own, over a copy of the code that differs in this alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.replay.replaying import RECORDED

ROOT = Path(__file__).parents[2]
ALL_REPLAYED = f"replayed {len(RECORDED)}, failed []\n"
CODE = ("daytwo", "workflows", "activities", "workers", "tests/replay", "tests/histories")
WHAT_IS_SAID = """
from daytwo.faults.catalogue import catalogue
from daytwo.domain.policy import Policy
print(catalogue().get("xid-119").first_action.value, Policy().timing.settle_seconds)
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for part in CODE:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def python(code: Path, *arguments: str) -> str:
    environment = {"PYTHONPATH": str(code), "PATH": ""}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=code, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def edit(file: Path, pattern: str, replacement: str) -> None:
    text, found = re.subn(pattern, replacement, file.read_text())
    assert found
    file.write_text(text)


def test_with_an_edited_catalogue_and_an_edited_policy_every_history_replays(code: Path) -> None:
    edit(code / "daytwo/faults/catalogue/xid.toml", r'first_action = "[a-z-]+"', 'first_action = "tell-owner"')
    edit(code / "daytwo/domain/policy/times.py", r"default=1\.5,", "default=77,")
    assert python(code, "-c", WHAT_IS_SAID) == "tell-owner 77\n"
    assert python(code, "-m", "tests.replay.replaying") == ALL_REPLAYED


def test_without_any_catalogue_policy_or_judgement_every_history_replays(code: Path) -> None:
    for package in ("daytwo/faults/catalogue", "daytwo/domain/policy"):
        shutil.rmtree(code / package)
    for module in ("triage", "cases", "definition", "verification"):
        (code / f"daytwo/domain/{module}.py").unlink()
    assert python(code, "-m", "tests.replay.replaying") == ALL_REPLAYED
