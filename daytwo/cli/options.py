"""Options that several commands share, spelled the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(click.ParamType[int]):
    """A length of time such as `90s`, `10m`, `2h`, `1h30m` or `7d`, at most `most` of the same form, as seconds.

    `bare`: a number alone is seconds, and there must be some.
    """

    name = "duration"

    def __init__(self, most: str | None = None, *, bare: bool = False) -> None:
        self._most = most
        self._bare = bare

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text; a usage error says what was typed and what is allowed."""
        if isinstance(value, int):
            return value
        seconds = in_seconds(f"{value}s" if self._bare and value.isdecimal() else value)
        if seconds is None or not self._fits(seconds):
            limit = f", at most {self._most}" if self._most else ", and more than none" if self._bare else ""
            self.fail(
                f"found {value!r}; allowed is a number and s, m, h or d, such as 90s, 2h or 7d{limit}", param, ctx
            )
        return seconds

    def _fits(self, seconds: int) -> bool:
        return (seconds > 0 or not self._bare) and (self._most is None or seconds <= (in_seconds(self._most) or 0))


def in_seconds(text: str) -> int | None:
    """Read a length of time, `None` where it is none: one or more numbers, each with its unit."""
    if re.fullmatch(r"(\d{1,9}[smhd])+", text, re.ASCII) is None:
        return None
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text))


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
    """A number from `min`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the text; a usage error says what is allowed."""
        try:
            return float(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"found {value!r}; allowed is a number from {self.min or 0:g}", param, ctx)


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
