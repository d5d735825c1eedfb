"""Actions that are hard to undo: what each means, and a question before one that nobody has proposed is approved."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from daytwo.cli import output
from daytwo.cli.client import Service
from daytwo.cli.failure import Failure

MEANS: Final = {
    "remove": "the node is taken out for good and stays drained, until somebody has it tested "
    "(daytwo nodes repair NODE --action verify)",
    "reprovision": "the node is installed anew, and what is on its disks is lost",
    "failover": "a spare takes the place of the node",
}


def is_asked() -> bool:
    """True where somebody is there to answer."""
    return sys.stdin.isatty() and output.on_terminal()


def what_it_means(found: Mapping[str, Any], action: str | None) -> str:
    """What an action means that is hard to undo and is not the one that is proposed; empty for any other."""
    proposed = (found["proposal"] or {}).get("action")
    if action is None or action not in MEANS or action == proposed:
        return ""
    return f"{action} is not what is proposed ({output.cell(proposed or 'nothing')}): {MEANS[action]}."


def make_sure(service: Service, repair: str, action: str | None, *, yes: bool) -> None:
    """Ask whether such an action is meant. Raises `UsageError` without `--yes` where nobody can answer."""
    if yes or action not in MEANS:
        return
    says = what_it_means(service.get(f"/v1/repairs/{repair}"), action)
    if says and not is_asked():
        raise click.UsageError(f"Missing option '--yes': {says}")
    if says and not click.confirm(f"{says} Is that meant?"):
        raise Failure("Nothing was decided.", why="You did not say yes.", following=f"daytwo repairs show {repair}")
