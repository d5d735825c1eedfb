"""`daytwo findings`: what is seen wrong."""

from __future__ import annotations

import click

from daytwo.cli import options, output
from daytwo.cli.client import connect
from daytwo.cli.lazy import Group
from daytwo.cli.output import Column, since

COLUMNS = (
    Column("ID", lambda f: f["id"]),
    Column("NODE", lambda f: f"{f['cluster']}/{f['node']}"),
    Column("FAULT", lambda f: f["fault"]),
    Column("ENTITY", lambda f: f["entity"]),
    Column("STATE", lambda f: f["status"], state=True),
    Column("COUNT", lambda f: f["count"]),
    Column("LAST", lambda f: since(f["last_seen"])),
    Column("EVIDENCE", lambda f: f["evidence"][-1] if f["evidence"] else None),
)


@click.group(cls=Group)
def findings() -> None:
    """What is seen wrong now, and what was."""


@findings.command("list")
@click.option("--all", "everything", is_flag=True, help="Also what has cleared.")
@click.option("--fault", metavar="FAULT", help="Only this fault, such as xid-79.")
@options.cluster
@options.node
@options.page
@options.output
def list_findings(form: str, everything: bool, **wanted: object) -> None:
    """List findings, newest first: those that fire, or all."""
    with connect() as service:
        page = service.get("/v1/findings", state=() if everything else ("firing",), **wanted)
    output.show_list(page, form, COLUMNS, lambda finding: str(finding["id"]))
