"""`daytwo repairs`: what is proposed, what was decided, what is done.

The commands import what they do when they run, so that `--help` stays light.
"""

from __future__ import annotations

from typing import Any

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
    Column("SAYS", lambda r: r["attention"] or r["outcome"] or r["title"]),
)

revision = click.option(
    "--revision", type=click.IntRange(0), metavar="N", help="The revision you have read. Asked for on a terminal."
)
request_id = click.option(
    "--request-id", metavar="ID", help="Your own id: the same request sent twice is one decision."
)
timeout = click.option(
    "--timeout",
    type=options.Duration(),
    default="60s",
    show_default=True,
    help="How long to wait for the decision to end.",
)


@click.group()
def repairs() -> None:
    """What is proposed, decided and done."""


@repairs.command("list")
@click.option("--all", "everything", is_flag=True, help="Also repairs that have ended.")
@options.states("Only repairs in this state, such as proposed or needs-help.")
@options.cluster
@options.node
@options.page
@options.output
def list_repairs(form: str, everything: bool, **wanted: object) -> None:
    """List repairs, newest first: those that are open, or all."""
    open_only = not everything and not wanted["state"]
    with connect() as service:
        page = service.get("/v1/repairs", open_only=open_only, **wanted)
    output.show_list(page, form, COLUMNS, lambda repair: str(repair["id"]))


@repairs.command("show")
@click.argument("repair")
@options.output
def show(repair: str, form: str) -> None:
    """Show one repair: the proposal, how to answer it, and what happened so far."""
    from daytwo.cli.repair_text import as_text

    with connect() as service:
        found = service.get(f"/v1/repairs/{repair}")
    output.show_one(found, form, as_text, repair)


@repairs.command("approve")
@click.argument("repair")
@revision
@click.option("--action", metavar="ACTION", help="Another action than the proposed one.")
@click.option(
    "--moment",
    type=click.Choice(["now", "when-idle", "next-checkpoint"]),
    default="now",
    show_default=True,
    help="When work may be interrupted.",
)
@options.reason(required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@timeout
@request_id
def approve(
    repair: str, *, revision: int | None, yes: bool, timeout: int, request_id: str | None, **more: str | None
) -> int:
    """Approve a repair and wait until the decision is accepted or refused.

    With --revision, exactly what you have read is approved: when the proposal has changed since, nothing happens and
    the exit code is 5. Without it, on a terminal, the proposal is shown and you are asked.

    \b
      daytwo repairs approve r-20261130-142100-x7k2q --revision 2
    """
    return _decide("approve", repair, revision=revision, yes=yes, timeout=timeout, request_id=request_id, **more)


@repairs.command("dismiss")
@click.argument("repair")
@revision
@options.reason(required=True)
@click.option(
    "--snooze", "snooze_seconds", type=options.Duration(), metavar="TIME", help="Do not ask again for so long."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@timeout
@request_id
def dismiss(
    repair: str, *, revision: int | None, yes: bool, timeout: int, request_id: str | None, **more: str | int | None
) -> int:
    """Dismiss a repair: nothing is done to the node, and what keeps new work off it is lifted.

    Takes back an approval too, as long as no work was interrupted.
    """
    return _decide("dismiss", repair, revision=revision, yes=yes, timeout=timeout, request_id=request_id, **more)


@repairs.command("watch")
@click.argument("repair")
@click.option("--timeout", type=options.Duration(), help="Give up after so long, with exit code 6.")
def watch(repair: str, timeout: int | None) -> int:
    """Follow a repair to its end: exit 0 when it succeeded, 1 when it ended otherwise."""
    from daytwo.cli.watching import follow

    with connect() as service:
        return follow(service, repair, timeout)


def _decide(
    kind: str, repair: str, *, revision: int | None, yes: bool, timeout: int, request_id: str | None, **more: Any
) -> int:
    from daytwo.cli.deciding import Wish, decide, revision_on_screen

    with connect() as service:
        number = revision_on_screen(service, repair, yes=yes) if revision is None else revision
        return decide(service, Wish(kind, repair, number, request_id=request_id, more=more), timeout)
