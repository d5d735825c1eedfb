"""`daytwo faults`: the catalogue."""

from __future__ import annotations

import click

from daytwo.cli import options, output
from daytwo.cli.client import connect
from daytwo.cli.lazy import Group
from daytwo.cli.output import Column, Item, cell

COLUMNS = (
    Column("FAULT", lambda f: f["id"]),
    Column("SEVERITY", lambda f: f["severity"]),
    Column("CLASS", lambda f: f["fault_class"]),
    Column("MODE", lambda f: f["mode"]),
    Column("FIRST ACTION", lambda f: f["first_action"]),
    Column("CLEARS BY", lambda f: f["clears"]),
    Column("TITLE", lambda f: f["title"]),
)


@click.group(cls=Group)
def faults() -> None:
    """The catalogue of faults."""


@faults.command("list")
@options.output
def list_faults(form: str) -> None:
    """List every fault that daytwo knows."""
    with connect() as service:
        page = service.get("/v1/faults")
    output.show_list(page, form, COLUMNS, _name)


@faults.command("show")
@click.argument("fault")
@options.output
def show_fault(fault: str, form: str) -> None:
    """Show one fault: what it means, what clears it, what is done about it, and who says so."""
    with connect() as service:
        found = service.get(f"/v1/faults/{fault}")
    output.show_one(found, form, as_text, _name(found))


def as_text(fault: Item) -> str:
    """A fault for people."""
    lines = [
        f"{fault['id']}  {cell(fault['title'])}",
        f"  {fault['severity']}, class {fault['fault_class']}, mode {fault['mode']} unless the policy says otherwise",
        f"  means:   {cell(fault['meaning'])}",
        f"  first:   {cell(fault['first_action'])}",
        f"  clears:  {fault['clears']}",
        f"  tests:   {cell(fault['verify'])}",
        f"  source:  {cell(fault['source'])}",
    ]
    return "\n".join([*lines, f"  notes:   {cell(fault['notes'])}"] if fault["notes"] else lines)


def _name(fault: Item) -> str:
    return str(fault["id"])
