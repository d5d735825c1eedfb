"""A reader who types what the papers say gets a command that exists, and a definition that is accepted."""

from __future__ import annotations

import re

import click
import pytest

from daytwo.cli.main import root
from daytwo.domain.load_definition import load_definitions
from tests.house.papers import PAPERS, README, code_of

COMMAND = re.compile(r"^(?:\.venv/bin/)?daytwo((?: [a-z][a-z-]+)+)", re.MULTILINE)


def commands() -> list[tuple[str, ...]]:
    found = {words for paper in PAPERS for words in COMMAND.findall(code_of(paper))}
    return sorted(tuple(words.split()) for words in found)


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_in_the_papers_exists(words: tuple[str, ...]) -> None:
    command: click.Command | None = root
    context = click.Context(root)
    for word in words:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(context, word)
        assert command is not None, f"daytwo {' '.join(words)}"


def test_the_papers_name_commands_at_all() -> None:
    assert ("repairs", "approve") in {words[:2] for words in commands()}


def test_the_cluster_definition_in_the_readme_is_accepted() -> None:
    assert load_definitions(code_of(README, "yaml"), "README.md").name == "east"
