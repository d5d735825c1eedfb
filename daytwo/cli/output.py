"""How results are printed: tables for people, JSON and YAML for programs, names for pipes; notes on standard error.

Modules that only some calls need are imported where they are used: this one is loaded by `--help` too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

Item = dict[str, Any]

GLYPHS = {
    "healthy": ("✔", "green"),
    "succeeded": ("✔", "green"),
    "accepted": ("✔", "green"),
    "booting": ("↻", "blue"),
    "unhealthy": ("✘", "red"),
    "needs-help": ("✘", "red"),
    "refused": ("✘", "red"),
    "firing": ("✘", "red"),
    "pending": ("◔", "yellow"),
    "counted": ("◔", "yellow"),
    "proposed": ("◔", "yellow"),
    "paused": ("‖", "white"),
    "held": ("‖", "white"),
    "unknown": ("?", "magenta"),
}


LONGEST_LINE = 2000


class Column(NamedTuple):
    """A column of a table. `state` marks the one that is shown with a glyph and a colour on a terminal."""

    head: str
    cell: Callable[[Item], Any]
    state: bool = False


def show_list(page: Item, form: str, columns: Sequence[Column], name: Callable[[Item], str]) -> None:
    """Print one page of a list in the asked form; say on standard error when there is more."""
    items: list[Item] = page["items"]
    if form == "table":
        _table(items, columns)
    else:
        _plain(items, form, [name(item) for item in items])
    if page.get("next"):
        note(f"There is more: --after {page['next']}")


def show_one(item: Item, form: str, text: Callable[[Item], str], name: str) -> None:
    """Print one thing: `text` makes the form for people."""
    if form == "table":
        click.echo(text(item))
    else:
        _plain(item, form, [name])


def note(text: str) -> None:
    """A line that is not data, on standard error."""
    click.echo(clean(text), err=True)


def clean(value: object, limit: int = 500) -> str:
    """`value` as text that no terminal obeys: what a node or a job says must not move the cursor or change a line."""
    from daytwo.domain.message import clean as cleaned

    return cleaned(str(value), limit)


def block(text: str) -> str:
    """Several lines, each cleaned, with their indentation kept."""
    lines = text.splitlines()
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + clean(line, LONGEST_LINE) for line in lines)


def cell(value: object) -> str:
    """A value as a table shows it; nothing is a dash."""
    if isinstance(value, (list, tuple)):
        value = ", ".join(str(part) for part in value)
    return "-" if value in (None, "") else clean(value)


def since(at: str | None) -> str:
    """How long ago a time of the API was: `5s`, `12m`, `3h`, `4d`."""
    from datetime import UTC, datetime

    if at is None:
        return "-"
    seconds = max(0, int((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def ago(at: str | None) -> str:
    """How long ago a time of the API was, in a sentence: `12s ago`, `1m 41s ago`, `3h 5m ago`, `2d 4h ago`."""
    return f"{span(at)} ago" if at else "never"


def span(at: str | None) -> str:
    """How long it is since a time of the API, in its two largest units."""
    from datetime import UTC, datetime

    return lasting((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()) if at else "-"


def until(at: str) -> str:
    """A time of the API that is to come, and how long that is from now."""
    from datetime import UTC, datetime

    left = (datetime.fromisoformat(at) - datetime.now(UTC)).total_seconds()
    return f"until {moment(at)} ({lasting(left)} more)" if left > 0 else f"until {moment(at)}"


def lasting(seconds: float) -> str:
    """A length of time in its two largest units: `12s`, `1m 41s`, `3h 5m`, `2d 4h`."""
    whole = max(0, int(seconds))
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    first = next((at for at, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"


def moment(at: str | None) -> str:
    """A time of the API in one form, UTC."""
    from datetime import UTC, datetime

    return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M:%SZ}" if at else "-"


def with_glyph(state: str, padded: str = "") -> str:
    """A state as a terminal shows it: never by colour alone. Elsewhere the word."""
    word = padded or state
    if not on_terminal():
        return word
    glyph, colour = GLYPHS.get(state, ("·", "white"))
    return click.style(f"{glyph} {word}", fg=colour) if wants_colour() else f"{glyph} {word}"


def on_terminal() -> bool:
    """True when standard output is a terminal."""
    return sys.stdout.isatty()


def wants_colour() -> bool:
    """Colour: on a terminal that has it, unless NO_COLOR is set."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _table(items: Sequence[Item], columns: Sequence[Column]) -> None:
    if not items:
        note("None.")
        return
    rows = [[cell(column.cell(item)) for column in columns] for item in items]
    widths = [
        max(map(len, (column.head, *column_cells)))
        for column, column_cells in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    glyph_room = "  " if on_terminal() else ""
    heads = [
        (glyph_room if column.state else "") + column.head.ljust(width)
        for column, width in zip(columns, widths, strict=True)
    ]
    click.echo("  ".join(heads).rstrip())
    for row in rows:
        click.echo(_line(row, columns, widths))


def _line(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    cells = zip(row, columns, widths, strict=True)
    shown = [
        with_glyph(text, text.ljust(width)) if column.state else text.ljust(width) for text, column, width in cells
    ]
    return "  ".join(shown).rstrip()


def _plain(data: object, form: str, names: Sequence[str]) -> None:
    if form == "name":
        click.echo("\n".join(names), nl=bool(names))
    elif form == "json":
        import json

        click.echo(json.dumps(data, indent=2))
    else:
        import yaml

        # Never folded: a text that is folded begins a line, which could pass for one of ours.
        click.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=False, width=sys.maxsize), nl=False)
