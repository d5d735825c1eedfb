"""`daytwo server`: what a Temporal server needs once."""

from __future__ import annotations

import asyncio

import click


@click.group()
def server() -> None:
    """Prepare a Temporal server."""


@server.command("init")
def init() -> None:
    """Register daytwo's search attributes on the Temporal server; safe to repeat.

    The server is the one that TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_TLS… or temporal.toml name.
    """
    added = asyncio.run(_register())
    click.echo(f"Added search attributes: {', '.join(added)}" if added else "Every search attribute is there already.")


async def _register() -> tuple[str, ...]:
    # Imported here, so that `--help` does not load Temporal's client.
    from daytwo.temporal import connect, register_search_attributes

    return await register_search_attributes(await connect())
