"""Options that several commands share, spelled the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(click.ParamType[int]):
    """A length of time such as `90s`, `10m`, `2h` or `7d`, as seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text; a usage error says what is allowed."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,9})([smhd])", value, re.ASCII)
        if found is None:
            self.fail(
                f"{value!r} is not a length of time; allowed is a number and s, m, h or d, such as 90s or 7d",
                param,
                ctx,
            )
        return int(found[1]) * UNITS[found[2]]


class Whole(click.IntRange):
    """A whole number from `min` to `max`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text; a usage error says what is allowed."""
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            upper = "" if self.max is None else f" to {self.max}"
            self.fail(f"found {value!r}; allowed is a whole number from {self.min or 0}{upper}", param, ctx)


class Number(click.FloatRange):
    """A number from `min`, or above it if `min_open`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the text; a usage error says what is allowed."""
        try:
            return float(super().convert(value, param, ctx))
        except click.BadParameter:
            edge = "above" if self.min_open else "from"
            self.fail(f"found {value!r}; allowed is a number {edge} {self.min or 0:g}", param, ctx)


class Reason(click.ParamType[str]):
    """A sentence that says why."""

    name = "text"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """What is missing, and what it is good for."""
        return "Say why: it is kept for ever, so that whoever comes next can judge."


def output(command: Command) -> Command:
    """`-o table|json|yaml|name`, as the parameter `form`."""
    choice = click.Choice(["table", "json", "yaml", "name"])
    return click.option("-o", "--output", "form", type=choice, default="table", show_default=True, help="Form.")(
        command
    )


def page(command: Command) -> Command:
    """`--limit` and `--after`."""
    after = click.option("--after", metavar="NEXT", help="Continue a list: what the note at its end says.")
    limit = click.option("--limit", type=Whole(1, 1000), default=100, show_default=True, help="At most so many.")
    return limit(after(command))


def states(text: str) -> Callable[[Command], Command]:
    """`--state`, which may be given several times."""
    return click.option("--state", "state", multiple=True, metavar="STATE", help=f"{text} May be repeated.")


cluster: Final = click.option("--cluster", metavar="CLUSTER", help="Only this cluster.")
node: Final = click.option("--node", metavar="NODE", help="Only this node: `node` or `cluster/node`.")


def reason(*, required: bool) -> Callable[[Command], Command]:
    """`--reason`, required where what is done needs one."""
    if required:
        return click.option("--reason", metavar="TEXT", type=Reason(), required=True, help="Why. Kept for ever.")
    return click.option("--reason", metavar="TEXT", default="", help="Why. Kept for ever.")
