"""`daytwo policy`: what a definition's policy comes to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from daytwo.cli import options, output
from daytwo.cli.definition_files import file_argument, load
from daytwo.cli.output import Column, Item

if TYPE_CHECKING:
    from daytwo.domain.policy import EffectiveRule


def own(rule: Item) -> list[str]:
    """The values of an effective rule that this definition sets."""
    return [f"{field} ({origin})" for field, origin in rule["origins"].items() if origin != "catalogue"]


COLUMNS = (
    Column("FAULT", lambda r: r["fault"]),
    Column("MODE", lambda r: r["mode"]),
    Column("ACTION", lambda r: r["action"]),
    Column("CONTAIN", lambda r: "yes" if r["contain"] else "no"),
    Column("THEN", lambda r: r["ladder"][1:]),
    Column("CLEARS BY", lambda r: r["clears"]),
    Column("NOT FROM THE CATALOGUE", own),
)


@click.group()
def policy() -> None:
    """Check a policy."""


@policy.command("check")
@file_argument
@options.output
def check(file: Path, form: str) -> None:
    """Check the policy in a cluster definition, without a service, and show what holds for each fault."""
    # Imported here, so that `--help` stays without pydantic.
    from daytwo.faults.catalogue import catalogue

    definition = load(file)
    rules = [definition.policy.rule_for(fault) for fault in catalogue().all()]
    output.show_list({"items": [_as_item(rule) for rule in rules]}, form, COLUMNS, lambda rule: str(rule["fault"]))


def _as_item(rule: EffectiveRule) -> Item:
    return rule.model_dump(mode="json")
