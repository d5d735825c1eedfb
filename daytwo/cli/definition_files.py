"""Reads cluster definitions on this side of the socket: a check needs no service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from daytwo.cli import output
from daytwo.domain.errors import BadInput

if TYPE_CHECKING:
    from daytwo.domain.definition import ClusterDefinition

file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


def load(file: Path) -> ClusterDefinition:
    """Return the definition in `file` and say on standard error what is likely to surprise. Raises `BadInput`."""
    # Imported here, so that `--help` stays without pydantic.
    from daytwo.domain.load_definition import check_definition, load_definitions

    definition = load_definitions(_text(file), str(file))
    for warning in check_definition(definition):
        output.note(f"{file}: note: {warning}")
    return definition


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: found {error}; allowed is a readable YAML file in UTF-8") from error
