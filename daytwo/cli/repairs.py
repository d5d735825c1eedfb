"""`daytwo repairs`: what is proposed, what was decided, what is done. A table only: `--help` loads no command."""

from __future__ import annotations

import click

from daytwo.cli.lazy import LazyGroup

_READ = "daytwo.cli.repairs_read"
_DECIDE = "daytwo.cli.repairs_decide"
TABLE = {
    "list": (f"{_READ}:list_repairs", "List repairs, newest first."),
    "show": (f"{_READ}:show", "Show the proposal and what happened so far."),
    "watch": (f"{_READ}:watch", "Follow a repair to its end."),
    "evidence": (f"{_READ}:evidence", "Write the newest evidence of a repair to a file."),
    "approve": (f"{_DECIDE}:approve", "Approve a repair, and wait until that is accepted."),
    "dismiss": (f"{_DECIDE}:dismiss", "Dismiss a repair: nothing is done to the node, and it takes new work again."),
    "hold": (f"{_DECIDE}:hold", "Stop a repair until it is released: before its act begins."),
    "release": (f"{_DECIDE}:release", "Let a held repair go on."),
    "retry": (f"{_DECIDE}:retry", "Needs help: act again, the same way or another."),
    "return": (f"{_DECIDE}:return_", "Needs help: test the node, return it if it passes."),
    "remove": (f"{_DECIDE}:remove", "Needs help: take the node out for good."),
    "hand-over": (f"{_DECIDE}:hand_over", "Needs help: it becomes yours, marks and all."),
}


@click.group(cls=LazyGroup, table=TABLE)
def repairs() -> None:
    """What is proposed, decided and done."""
