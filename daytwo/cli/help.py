"""`daytwo help`: topics that belong to no single command."""

from __future__ import annotations

import click

from daytwo.cli import exit_codes

OUTPUT = """\
-o table   for people (the default); columns may change
-o json    the API's own objects, one array for a list; fields are only ever added
-o yaml    the same
-o name    one id a line, accepted by every other command

Data goes to standard output, notes and progress to standard error. Colour only on a terminal, and not with NO_COLOR.
A list is bounded by --limit; when there is more, a note says what to give to --after."""

ENVIRONMENT = """\
DAYTWO_STATE_DIR       folder of the store, sockets and spools (default ~/.local/state/daytwo, root: /var/lib/daytwo)
DAYTWO_SERVICE_SOCKET  Unix socket of the service (default: service.sock in the state folder); also --socket
DAYTWO_LAB_SOCKET      Unix socket of the simulated fleet (default: lab.sock in the state folder); also --lab-socket
DAYTWO_STORE_URL       SQLAlchemy URL of the store (default: SQLite in the state folder)
DAYTWO_GATEWAY_URL     where nodes reach the gateway (default http://127.0.0.1:8460)
DAYTWO_TASK_QUEUE      Temporal task queue of the control worker (default daytwo)
TEMPORAL_ADDRESS, …    Temporal's own variables and temporal.toml say where Temporal is
NO_COLOR               no colour"""

TOPICS = {"exit-codes": exit_codes.as_text(), "output": OUTPUT, "environment": ENVIRONMENT}


@click.command("help")
@click.argument("topic", type=click.Choice(list(TOPICS)), required=False)
@click.pass_context
def help_(context: click.Context, topic: str | None) -> None:
    """Explain what belongs to no single command: exit-codes, output, environment."""
    if topic:
        click.echo(TOPICS[topic])
    elif context.parent:
        click.echo(context.parent.get_help())
