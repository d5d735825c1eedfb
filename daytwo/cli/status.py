"""`daytwo status`: the installation in one answer."""

from __future__ import annotations

import click

from daytwo.cli import exit_codes, options, output
from daytwo.cli.client import connect
from daytwo.cli.output import Item, cell, since


@click.command()
@click.option("--exit-status", is_flag=True, help="Exit with 8 when something is not healthy.")
@options.output
@click.pass_context
def status(context: click.Context, exit_status: bool, form: str) -> None:
    """Nodes and repairs by state, what is frozen, and whether the controller's loops live."""
    with connect() as service:
        found = service.get("/v1/status")
    output.show_one(found, form, as_text, "healthy" if found["healthy"] else "unhealthy")
    context.exit(exit_codes.UNHEALTHY if exit_status and not found["healthy"] else exit_codes.OK)


def as_text(found: Item) -> str:
    """The status for people."""
    lines = [
        f"{output.with_glyph('healthy' if found['healthy'] else 'unhealthy')}",
        f"  nodes:     {_counts(found['nodes'])}",
        f"  repairs:   {_counts(found['repairs'])}",
        f"  firing:    {found['firing']} findings",
        f"  decisions: {found['decisions_pending']} not delivered yet",
    ]
    lines += [f"  frozen:    {cell(f['scope'])} by {cell(f['actor'])}: {cell(f['reason'])}" for f in found["freezes"]]
    lines += [f"  loop:      {cell(loop['name'])} {_alive(loop)}" for loop in found["loops"]]
    return "\n".join(lines if found["loops"] else [*lines, "  loop:      none has ever run: is the controller up?"])


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none"


def _alive(loop: Item) -> str:
    return f"runs on {cell(loop['holder'])}" if loop["alive"] else f"STOPPED {since(loop['expires_at'])} ago"
