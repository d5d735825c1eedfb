"""`daytwo repairs list|show|watch|evidence`."""

from __future__ import annotations

import click

from daytwo.cli import options, output
from daytwo.cli.client import connect
from daytwo.cli.output import Column, since
from daytwo.domain.errors import BadInput

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


@click.command("evidence")
@click.argument("repair")
@click.option("--to", "target", type=click.Path(), help="Where to write it. Default: REPAIR.tar.gz here.")
def evidence(repair: str, target: str | None) -> None:
    """Write the newest evidence of a repair to a file.

    A .tar.gz with the kernel log, nvidia-smi and the agent's last readings, as they were before the act. It is what the
    node says: open it as you would a stranger's file.
    """
    import base64
    import os
    from pathlib import Path

    with connect() as service:
        found = service.post("/v1/evidence", {"repair": repair}, following=f"daytwo repairs show {repair}")
    path = Path(target or f"{found['id'].partition('/')[0]}.tar.gz")
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(base64.b64decode(found["archive"]))
    except OSError as error:
        problem = f"to: found {str(path)!r}, which cannot be written ({error.strerror}); allowed is a new file"
        raise BadInput(problem) from None
    click.echo(f"{path}  {found['size']} bytes, sha256 {found['sha256']}")
