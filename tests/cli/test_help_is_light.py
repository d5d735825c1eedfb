"""`--help` at every level answers without loading what commands need."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from daytwo.cli import exit_codes
from daytwo.cli.lazy import LazyGroup
from daytwo.cli.main import root, run
from daytwo.cli.repairs import repairs

ROOT = Path(__file__).parents[2]
HEAVY = (
    "temporalio",
    "kubernetes",
    "sqlmodel",
    "sqlalchemy",
    "pydantic",
    "fastapi",
    "httpx",
    "yaml",
    "uvicorn",
    "asyncio",
)
COUNT = """
import sys
from daytwo.cli.main import run
codes = [run([*words.split(), "--help"]) for words in sys.argv[2:]]
heavy = sorted(set(sys.argv[1].split(",")) & set(sys.modules))
sys.exit(f"loaded {heavy}" if heavy else max(codes))
"""

LOADED = """
import sys
from daytwo.cli.main import run
run(["--help"])
print([name for name in sys.modules if "daytwo.cli" in name])
"""


def commands(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    context = click.Context(group)
    found: list[tuple[str, ...]] = [path]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found += commands(command, *path, name) if isinstance(command, click.Group) else [(*path, name)]
    return found


ALL = commands(root)


def test_no_help_loads_a_heavy_module() -> None:
    words = [" ".join(path) for path in ALL if path != ("server",)]
    command = [sys.executable, "-c", COUNT, ",".join(HEAVY[:-1]), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_front_page_loads_no_command() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert "daytwo.cli.main" in loaded
    assert "daytwo.cli.repairs" not in loaded


@pytest.mark.parametrize("path", [path for path in ALL if path], ids=" ".join)
def test_every_command_says_what_it_is_for(path: tuple[str, ...]) -> None:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name) or command
    assert command.get_short_help_str(200)


GROUPS = sorted({path[:depth] for path in ALL for depth in range(len(path))})


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: " ".join(path) or "daytwo")
def test_the_help_of_a_group_says_whole_sentences(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    run([*path, "--help"])
    listed = capsys.readouterr().out.partition("Commands:\n")[2]
    said = [" ".join(text.split()) for text in re.findall(r"^  (\S+ .*(?:\n {4,}.*)*)", listed, re.MULTILINE)]
    assert said
    assert [text for text in said if not text.endswith((".", "?")) or "..." in text] == []


def test_the_table_of_the_front_page_holds_every_command() -> None:
    assert isinstance(root, LazyGroup)
    assert {
        "up",
        "repairs",
        "nodes",
        "findings",
        "faults",
        "policy",
        "clusters",
        "freeze",
        "thaw",
        "audit",
        "lab",
    } <= set(root.table)


@pytest.mark.parametrize("name", repairs.list_commands(click.Context(repairs)))
def test_a_table_says_what_the_command_says(name: str) -> None:
    command = repairs.get_command(click.Context(repairs), name)
    assert command is not None
    assert isinstance(repairs, LazyGroup)
    assert command.get_short_help_str(200) == repairs.table[name][1]


def test_the_reference_names_every_command() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    assert [" ".join(path) for path in ALL if path and f"daytwo {' '.join(path)}" not in text] == []


def test_the_published_exit_codes_are_the_ones_in_use() -> None:
    assert exit_codes.as_markdown() in (ROOT / "docs/exit-codes.md").read_text()
