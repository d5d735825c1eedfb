"""The pinned files are what a bare machine installs: complete, hashed, and silent about where they came from."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("requirements.txt", "requirements-dev.txt")
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)", re.MULTILINE)


def pins(file: str) -> dict[str, str]:
    return {found["name"]: found["version"] for found in PIN.finditer((ROOT / file).read_text())}


@pytest.mark.parametrize("file", FILES)
def test_every_requirement_is_pinned_and_hashed(file: str) -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / file).read_text().strip())
    assert len(entries) > 10
    assert [entry for entry in entries if not (PIN.match(entry) and "--hash=sha256:" in entry)] == []


@pytest.mark.parametrize("file", FILES)
def test_a_pinned_file_names_no_host(file: str) -> None:
    assert re.findall(r"://|--index-url|--extra-index-url|--find-links| @ ", (ROOT / file).read_text()) == []


def test_what_the_demo_runs_is_what_the_tests_run() -> None:
    demo, dev = pins(FILES[0]), pins(FILES[1])
    assert {name: dev.get(name) for name in demo} == demo


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    direct = project["project"]["dependencies"] + project["dependency-groups"]["build"]
    assert {re.split(r"[><=[]", line)[0] for line in direct} <= pins(FILES[0]).keys()


@pytest.mark.parametrize("name", ["daytwo", "workflows", "activities", "workers"])
def test_no_dependency_ships_our_top_level_names(name: str) -> None:
    assert set(packages_distributions().get(name, ["daytwo"])) == {"daytwo"}
