"""`daytwo server`: what a Temporal server and a database need before the processes start."""

from __future__ import annotations

import asyncio

import click

from daytwo.cli.becoming import become
from daytwo.cli.lazy import Group


@click.group(cls=Group)
def server() -> None:
    """Prepare a Temporal server and a database."""


@server.command("init")
def init() -> None:
    """Register daytwo's search attributes on the Temporal server; safe to repeat.

    The server is the one that TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_TLS… or temporal.toml name.
    """
    added = asyncio.run(_register())
    click.echo(f"Added search attributes: {', '.join(added)}" if added else "Every search attribute is there already.")


@server.command("migrate")
def migrate() -> None:
    """Bring the tables of the store up to date, as their owner; safe to repeat.

    Needed where the processes have roles that may not: elsewhere each does it when it starts.
    """
    become("workers.migrate")


async def _register() -> tuple[str, ...]:
    # Imported here, so that `--help` does not load Temporal's client.
    from daytwo.temporal import connect, register_search_attributes

    return await register_search_attributes(await connect())
