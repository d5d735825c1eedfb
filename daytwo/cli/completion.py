"""`daytwo completion`: what a shell sources so that it completes commands and options."""

from __future__ import annotations

import click

PROGRAM = "daytwo"
VARIABLE = "_DAYTWO_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
      source <(daytwo completion bash)
      daytwo completion fish > ~/.config/fish/completions/daytwo.fish
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    # Bash asks its own version otherwise, by running whatever `bash` is found.
    sources = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    complete = sources[shell](context.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(complete.source_template % complete.source_vars())
