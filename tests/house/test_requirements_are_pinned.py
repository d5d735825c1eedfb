"""The pinned files are what a bare machine installs: complete, hashed, and silent about where they came from."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata, packages_distributions
from pathlib import Path

import pytest
from packaging.markers import Marker

ROOT = Path(__file__).parents[2]
FILES = ("requirements.txt", "requirements-dev.txt")
GOOD = re.compile(r"MIT|BSD|Apache|PSF|MPL[- ]2|Mozilla Public License 2|^LGPL-3\.0-only$")
ELSEWHERE = {"atheris": "Apache-2.0"}
"""Whose package does not tell: as its repository has it."""
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


def licence_of(name: str) -> str:
    told = metadata(name)
    classified = [line.split(" :: ")[-1] for line in told.get_all("Classifier") or () if line.startswith("License ::")]
    return told.get("License-Expression") or "; ".join(classified) or told.get("License") or ELSEWHERE.get(name, "")


@pytest.mark.parametrize("file", FILES)
def test_every_licence_is_one_that_may_be_shipped(file: str) -> None:
    """Permissive ones, and two that bind only changes to the library itself: MPL 2.0 and, for psycopg, LGPL 3."""
    here = [found["name"] for found in PIN.finditer((ROOT / file).read_text()) if is_for_here(found["name"], file)]
    assert len(here) > 20
    assert {name: licence for name in here if not GOOD.search(licence := licence_of(name))} == {}


def is_for_here(name: str, file: str) -> bool:
    """Some are pinned for other systems or versions of Python."""
    line = next(line for line in (ROOT / file).read_text().splitlines() if line.startswith(f"{name}=="))
    marker = line.partition(";")[2].rstrip(" \\")
    return not marker or Marker(marker).evaluate()


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
