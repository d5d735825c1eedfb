"""How a command fails: one line what, one line why, one line what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from daytwo.cli import exit_codes
from daytwo.domain.errors import DaytwoError

WHY = {
    "NotFound": "The id is mistyped, it is gone, or it belongs to another installation.",
    "Stale": "It was changed after you looked at it. Nothing was done.",
    "Refused": "A rule of this installation forbids it. Nothing was done.",
    "BadInput": "The input breaks a rule. Nothing was done.",
    "Unreachable": "What the command needs does not answer.",
}
NEXT = {
    "NotFound": "list what there is, with the `list` or `status` command of the same noun",
    "BadInput": "correct it and run the same command again",
    "Unreachable": "start it, or say where it is: daytwo help environment",
}


class Failure(click.ClickException):
    """Ends the command with `exit_code` and three lines on standard error."""

    def __init__(self, what: str, *, why: str, following: str, exit_code: int = exit_codes.FAILED) -> None:
        super().__init__(what)
        self.why = why
        self.following = following
        self.exit_code = exit_code  # type: ignore[misc]  # click declares it on the class and reads it on the instance

    def format_message(self) -> str:
        """The three lines."""
        return f"{self.message}\n  Why:  {self.why}\n  Next: {self.following}"


def from_problem(body: Mapping[str, Any], following: str) -> Failure:
    """The failure that stands for an error the service answered."""
    return Failure(
        str(body.get("error", "the service answered an error that cannot be read")),
        why=WHY.get(str(body.get("type")), "The service could not do it now."),
        following=following,
        exit_code=int(body.get("exit_code", exit_codes.FAILED)),
    )


def from_error(error: DaytwoError) -> Failure:
    """The failure that stands for one of our own errors, raised on this side of the socket."""
    kind = type(error).__name__
    why = WHY.get(kind, "Something that is needed for it did not work.")
    return Failure(str(error), why=why, following=NEXT.get(kind, "daytwo help exit-codes"), exit_code=error.exit_code)
