"""`daytwo backup` and `daytwo restore`: the store as a file. `workers.backup` does it, beside whatever runs."""

from __future__ import annotations

import click

from daytwo.cli.becoming import become

file_argument = click.argument("file", type=click.Path(dir_okay=False))


@click.command("backup")
@file_argument
def backup(file: str) -> None:
    """Copy the store into FILE, a new file, while everything goes on.

    The store is the one that DAYTWO_STORE_URL or DAYTWO_STATE_DIR names. PostgreSQL's needs pg_dump. Back up Temporal's
    database too: docs/upgrading.md.
    """
    become("workers.backup", "backup", file)


@click.command("restore")
@file_argument
def restore(file: str) -> None:
    """Put the store back to what it was when FILE was taken. Stop every process of daytwo first.

    The store that is there is kept beside it. Afterwards everything is frozen: repairs are compared with Temporal,
    nodes are asked anew, people are asked what nobody knows, and `daytwo thaw` lets acts begin again.
    """
    become("workers.backup", "restore", file)
