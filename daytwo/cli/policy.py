"""`daytwo policy`: what a definition's policy comes to."""

from __future__ import annotations

from pathlib import Path

import click

from daytwo.cli import options, output
from daytwo.cli.definition_files import file_argument, load
from daytwo.cli.lazy import Group
from daytwo.cli.output import Column, Item, cell


def own(rule: Item) -> list[str]:
    """The values of an effective rule that this definition sets."""
    return [f"{field} ({origin})" for field, origin in rule["origins"].items() if origin != "catalogue"]


COLUMNS = (
    Column("FAULT", lambda r: r["fault"]),
    Column("MODE", lambda r: r["mode"]),
    Column("ACTION", lambda r: r["action"]),
    Column("CONTAIN", lambda r: "yes" if r["contain"] else "no"),
    Column("THEN", lambda r: r["ladder"][1:]),
    Column("SKIPPED", lambda r: list(r["skipped"])),
    Column("CLEARS BY", lambda r: r["clears"]),
    Column("NOT FROM THE CATALOGUE", own),
)


@click.group(cls=Group)
def policy() -> None:
    """Check a policy, and explain what it comes to."""


@policy.command("check")
@file_argument
@options.output
def check(file: Path, form: str) -> None:
    """Check the policy in a cluster definition, without a service, and show what holds for each fault.

    Skipped are the steps that no driver of the cluster carries out; a note says which one would.
    """
    # Imported here, so that `--help` stays without pydantic.
    from daytwo.domain.drivers import NO_DRIVER, skipped
    from daytwo.faults.catalogue import catalogue

    definition = load(file)
    rules = [definition.policy.rule_for(fault) for fault in catalogue().all()]
    items = [{**rule.model_dump(mode="json"), "skipped": skipped(definition, rule.ladder)} for rule in rules]
    output.show_list({"items": items}, form, COLUMNS, lambda rule: str(rule["fault"]))
    never = {action for item in items for action, would in item["skipped"].items() if would == NO_DRIVER}
    if never:
        output.note(f"{file}: note: skipped on every cluster, for {NO_DRIVER} does it: {', '.join(sorted(never))}")


@policy.command("explain")
@click.argument("fault")
@click.option("--cluster", metavar="CLUSTER", help="Whose policy. May be left out where there is one cluster.")
@options.output
def explain(fault: str, form: str, cluster: str | None) -> None:
    """Show what holds for a fault on a cluster, and which rule each value comes from."""
    from daytwo.cli.client import connect

    with connect() as service:
        found = service.get(f"/v1/policy/{fault}", cluster=cluster)
    output.show_one(found, form, as_text, fault)


def as_text(found: Item) -> str:
    """An effective rule for people: value by value, with where each was written."""
    rule = found["rule"]
    lines = [f"{cell(rule['fault'])} on {cell(found['cluster'])}, policy revision {found['policy_revision']}"]
    lines += [f"  {field:<17} {cell(rule[field]):<24} {origin}" for field, origin in rule["origins"].items()]
    persons = "two persons with" if found["two_persons"] else "anybody with"
    lines.append(
        f"  {rule['action']} is approved by {persons} the role {' or '.join(found['approved_by']) or '(none)'}"
    )
    if found["windows"]:
        lines.append(f"  and begins only in the windows: {', '.join(map(cell, found['windows']))}")
    return "\n".join(lines)
