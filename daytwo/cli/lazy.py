"""Groups of commands: one that loads each when it is called, and one whose list of them says whole sentences."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

LONGEST_SENTENCE: Final = 1000


class WholeHelp(click.Command):
    """A command whose first sentence is never cut off where a list shows it."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence, however long."""
        return super().get_short_help_str(LONGEST_SENTENCE)


class Group(click.Group):
    """A group whose list shows the first sentence of each command."""

    command_class = WholeHelp


class LazyGroup(click.Group):
    """Commands are loaded when they are called: `--help` reads a table and imports nothing else.

    `table` maps each command to where it is (`module:attribute`) and to its one line of help.
    """

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.table = dict(table or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the table, without importing any."""
        commands = [CompletionItem(name, help=text) for name, (_, text) in self.table.items()]
        return [item for item in commands if str(item.value).startswith(incomplete)] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])
