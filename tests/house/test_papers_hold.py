"""What README, CHANGELOG, units and contracts claim is so."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest

import daytwo
from tests.house.papers import PAPERS, README, ROOT, code_of

UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(paper: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", paper.read_text())
    assert [link for link in links if not (paper.parent / link).exists()] == []


@functools.cache
def names_of_tests() -> set[str]:
    texts = [path.read_text() for path in ROOT.glob("tests/**/*.py")]
    return {name for text in texts for name in re.findall(r"def (test_\w+)", text)}


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_in_papers_exist(paper: Path) -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets
    assert set(re.findall(r"\bmake ([a-z-]+)", code_of(paper))) <= set(targets[1].split())


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tests_named_in_papers_exist(paper: Path) -> None:
    assert [name for name in re.findall(r"ARGS=(tests/[\w/.]*\w)", code_of(paper)) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("paper", sorted(ROOT.glob("docs/*.md")), ids=lambda path: path.name)
def test_tests_that_papers_name_as_proof_exist(paper: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", paper.read_text()))
    assert named <= names_of_tests() | {path.stem for path in ROOT.glob("tests/**/test_*.py")}


def test_files_named_in_the_readme_exist() -> None:
    named = re.findall(
        r"`((?:daytwo|workflows|activities|workers|tests|docs|deploy|bench)/[\w./-]+)`", README.read_text()
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_version_is_the_same_everywhere() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == daytwo.__version__


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    newest = re.findall(r"^## (.*)$", text, re.MULTILINE)[0]
    assert re.fullmatch(rf"\[{re.escape(daytwo.__version__)}\] – (unreleased|\d{{4}}-\d\d-\d\d)", newest)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds


def test_every_decision_is_listed() -> None:
    files = {path.name for path in (ROOT / "docs/adr").glob("0*.md")}
    assert set(re.findall(r"\((0[^)]+\.md)\)", (ROOT / "docs/adr/README.md").read_text())) == files


def test_the_import_contracts_are_kept() -> None:
    lint = Path(sysconfig.get_path("scripts")) / "lint-imports"
    done = subprocess.run([lint, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    # The programs are not installed where tests run; an instance is what a template is started as.
    copy = tmp_path / unit.name.replace("@.", "@worker.")
    copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
