"""`daytwo repairs list|show|watch`."""

from __future__ import annotations

import click

from daytwo.cli import options, output
from daytwo.cli.client import connect
from daytwo.cli.output import Column, since

COLUMNS = (
    Column("REPAIR", lambda r: r["id"]),
    Column("NODE", lambda r: f"{r['cluster']}/{r['node']}"),
    Column("STATE", lambda r: r["state"], state=True),
    Column("SINCE", lambda r: since(r["state_since"])),
    Column("REV", lambda r: r["revision"]),
    Column("ACTION", lambda r: r["action"]),
    Column("FAULT", lambda r: r["fault"]),
    Column("SAYS", lambda r: r["attention"] or r["waiting_for"] or r["outcome"] or r["title"]),
)


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Also repairs that have ended.")
@options.states("Only repairs in this state, such as proposed or needs-help.")
@options.cluster
@options.node
@options.page
@options.output
def list_repairs(form: str, everything: bool, **wanted: object) -> None:
    """List repairs, newest first."""
    open_only = not everything and not wanted["state"]
    with connect() as service:
        page = service.get("/v1/repairs", open_only=open_only, **wanted)
    output.show_list(page, form, COLUMNS, lambda repair: str(repair["id"]))


@click.command("show")
@click.argument("repair")
@options.output
def show(repair: str, form: str) -> None:
    """Show the proposal and what happened so far."""
    from daytwo.cli.repair_text import as_text

    with connect() as service:
        found = service.get(f"/v1/repairs/{repair}")
    output.show_one(found, form, as_text, repair)


@click.command("watch")
@click.argument("repair")
@click.option("--timeout", type=options.Duration(), help="Give up after so long, with exit code 6.")
def watch(repair: str, timeout: int | None) -> int:
    """Follow a repair to its end.

    Exit code 0 when it succeeded, 1 when it ended otherwise.
    """
    from daytwo.cli.watching import follow

    with connect() as service:
        return follow(service, repair, timeout)
