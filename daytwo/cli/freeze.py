"""`daytwo freeze` and `daytwo thaw`: the brake."""

from __future__ import annotations

import click

from daytwo.cli import options, output
from daytwo.cli.client import Service, connect
from daytwo.cli.output import Column, Item, ago, since

COLUMNS = (
    Column("SCOPE", lambda f: f["scope"]),
    Column("SINCE", lambda f: since(f["at"])),
    Column("WHO", lambda f: f["actor"]),
    Column("REASON", lambda f: f["reason"]),
    Column("THAWED", lambda f: f["thawed_by"]),
)


@click.command()
@click.argument("scope", default="*")
@click.option("--list", "listed", is_flag=True, help="Only show what is frozen.")
@options.reason(required=False)
@options.output
def freeze(scope: str, listed: bool, reason: str, form: str) -> None:
    """Stop every act that has not begun, in SCOPE: `*` (default), `cluster` or `cluster/node`.

    Anybody who can reach the service may do this. What has begun goes on; nothing is undone. What is frozen already
    stays so, and your reason is added to it.
    """
    if not listed and not reason.strip():
        raise click.UsageError("Missing option '--reason': say why, so that whoever finds it frozen can judge.")
    with connect() as service:
        page = service.get("/v1/freezes") if listed else _freeze(service, scope, reason)
    output.show_list(page, form, COLUMNS, lambda row: str(row["scope"]))
    for row in page["items"]:
        if row.get("again"):
            output.note(f"It was frozen {ago(row['at'])} already, by {row['actor']}; that freeze stands.")


def _freeze(service: Service, scope: str, reason: str) -> Item:
    return {"items": [service.post("/v1/freezes", {"scope": scope, "reason": reason})]}


@click.command()
@click.argument("scope", default="*")
@options.reason(required=True)
@options.output
def thaw(scope: str, reason: str, form: str) -> None:
    """End the freezes of exactly this SCOPE. What was approved meanwhile is checked again, one node at a time."""
    with connect() as service:
        page = service.post("/v1/thaws", {"scope": scope, "reason": reason})
    output.show_list(page, form, COLUMNS, lambda row: str(row["scope"]))
