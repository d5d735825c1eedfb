"""How a command fails: one line what, one line why, one line what to do next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import click

from daytwo.cli import exit_codes
from daytwo.domain.errors import DaytwoError

WHY: Final = {
    "NotFound": "The id is mistyped, it is gone, or it belongs to another installation.",
    "Stale": "It is not as it was when you looked at it. Nothing was done.",
    "Refused": "A rule forbids it, or somebody else has what it needs. Nothing was done.",
    "BadInput": "The input breaks a rule. Nothing was done.",
    "Unreachable": "What the command needs does not answer.",
}
NEXT: Final = {
    "NotFound": "list what there is, with the `list` or `status` command of the same noun",
    "BadInput": "correct it and run the same command again",
    "Unreachable": "start it, or say where it is: daytwo help environment",
}
LISTS: Final = {
    "repair": "daytwo repairs list --all",
    "cluster": "daytwo clusters list",
    "node": "daytwo nodes list",
    "fault": "daytwo faults list",
}
"""What lists the thing that is not there."""


class Failure(click.ClickException):
    """Ends the command with `exit_code` and three lines on standard error."""

    def __init__(self, what: str, *, why: str, following: str, exit_code: int = exit_codes.FAILED) -> None:
        super().__init__(what)
        self.why = why
        self.following = following
        self.exit_code = exit_code  # type: ignore[misc]  # click declares it on the class and reads it on the instance

    def format_message(self) -> str:
        """The three lines."""
        from daytwo.cli.output import block

        return f"{block(self.message)}\n  Why:  {block(self.why)}\n  Next: {block(self.following)}"


def from_problem(body: Mapping[str, Any], following: str) -> Failure:
    """The failure that stands for an error the service answered, in its own words where it has some."""
    what = str(body.get("error", "the service answered an error that cannot be read"))
    missing = re.match(r"there is no (\w+) ", what)
    following = LISTS.get(missing[1], following) if missing else following
    return Failure(
        what,
        why=str(body.get("why") or WHY.get(str(body.get("type")), "The service could not do it now.")),
        following=str(body.get("next") or following),
        exit_code=int(body.get("exit_code", exit_codes.FAILED)),
    )


def from_error(error: DaytwoError, following: str | None = None) -> Failure:
    """The failure that stands for one of our own errors, raised on this side of the socket."""
    kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in WHY), "")
    why = error.why or WHY.get(kind, "Something that is needed for it did not work.")
    following = error.following or following or NEXT.get(kind, "daytwo help exit-codes")
    return Failure(str(error), why=why, following=following, exit_code=error.exit_code)


def from_usage(error: click.UsageError) -> Failure:
    """The failure that stands for a command that was written wrongly."""
    path = error.ctx.command_path if error.ctx else "daytwo"
    return Failure(
        error.format_message(),
        why="The command is not written like this. Nothing was done.",
        following=f"{path} --help",
        exit_code=exit_codes.USAGE,
    )
