"""`daytwo help`: topics that belong to no single command."""

from __future__ import annotations

import re

import click

from daytwo.cli import exit_codes
from daytwo.cli.processes import AGENT_OPTIONS
from daytwo.settings import VARIABLES

OUTPUT = """\
-o table   for people (the default); columns may change
-o json    the API's own objects, one array for a list; fields are only ever added
-o yaml    the same
-o name    one id a line, accepted by every other command

Data goes to standard output, notes and progress to standard error. Colour only on a terminal, and not with NO_COLOR.
A list is bounded by --limit; when there is more, a note says what to give to --after."""

ELSEWHERE = {
    "TEMPORAL_ADDRESS, …": "Temporal's own variables and temporal.toml say where Temporal is",
    "NO_COLOR": "no colour",
}


def environment() -> str:
    """Every variable with what it is for, a line each: the plane's, the agent's, and those of others that count."""
    agents = {
        f"DAYTWO_AGENT_{name.upper().replace('-', '_')}": f"the agent's --{name}"
        for name in re.findall(r"^  --([a-z-]+) [A-Z]", AGENT_OPTIONS, re.MULTILINE)
    }
    rows = {**VARIABLES, **agents, **ELSEWHERE}
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows.items())


TOPICS = {"exit-codes": exit_codes.as_text(), "output": OUTPUT, "environment": environment()}


@click.command("help")
@click.argument("topic", type=click.Choice(list(TOPICS)), required=False)
@click.pass_context
def help_(context: click.Context, topic: str | None) -> None:
    """Explain what belongs to no single command: exit-codes, output, environment."""
    if topic:
        click.echo(TOPICS[topic])
    elif context.parent:
        click.echo(context.parent.get_help())
