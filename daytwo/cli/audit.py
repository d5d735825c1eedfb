"""`daytwo audit`: who did what, and whether the record is whole."""

from __future__ import annotations

import click

from daytwo.cli import exit_codes, options, output
from daytwo.cli.client import connect
from daytwo.cli.lazy import Group
from daytwo.cli.output import Column, Item, moment

COLUMNS = (
    Column("NUMBER", lambda a: a["number"]),
    Column("AT", lambda a: moment(a["at"])),
    Column("WHO", lambda a: a["actor"]),
    Column("DID", lambda a: a["act"]),
    Column("TO", lambda a: a["subject"]),
    Column("WITH", lambda a: [f"{name}={value}" for name, value in a["data"].items() if value not in (None, "")]),
)


@click.group(cls=Group)
def audit() -> None:
    """Who did what; and whether the record is whole."""


@audit.command("list")
@click.option(
    "--subject", metavar="ID", help="Only this node (`node` or `cluster/node`) and its repairs, repair, cluster or `*`."
)
@options.page
@options.output
def list_audit(form: str, **wanted: object) -> None:
    """List what was done, newest first."""
    with connect() as service:
        page = service.get("/v1/audit", **wanted)
    output.show_list(page, form, COLUMNS, lambda row: str(row["number"]))


@audit.command("verify")
@options.output
@click.pass_context
def verify(context: click.Context, form: str) -> None:
    """Walk the chain: exit 0 when it is whole, 1 with the first bad row when it was changed, removed or reordered."""
    with connect() as service:
        verdict = service.get("/v1/audit/verify")
    output.show_one(verdict, form, as_text, "whole" if verdict["ok"] else "broken")
    context.exit(exit_codes.OK if verdict["ok"] else exit_codes.FAILED)


def as_text(verdict: Item) -> str:
    """The verdict in a line. The head is worth writing down somewhere else: it proves all rows before it."""
    if verdict["ok"]:
        return f"The audit chain is whole: {verdict['count']} rows, head {verdict['head'] or '-'}"
    return f"The audit chain is BROKEN at row {verdict['bad_number']}: {output.clean(verdict['problem'])}"
