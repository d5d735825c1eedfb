"""How the demo looks: numbered steps, quiet lines, one table. Plain text, so that it can be piped and pasted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from typing import Any, Final

import click

_steps = count(1)
ORDER: Final = ("detected", "recommended", "approved", "drained", "acted", "verified", "returned")


def step(title: str) -> None:
    """Begin a new part of the story."""
    click.secho(f"\n{next(_steps)}. {title}", bold=True)


def line(text: str) -> None:
    """One line of the part."""
    click.echo(f"   {text}")


def block(text: str) -> None:
    """What another program printed."""
    for row in text.rstrip().splitlines():
        line(row)


def event(found: dict[str, Any]) -> None:
    """One line of a repair's timeline, in local time."""
    at = datetime.fromisoformat(found["at"]).astimezone()
    line(f"{at:%H:%M:%S}.{at.microsecond // 100_000}    {found['to_state']:<12} {_said(found)}")


def _said(found: dict[str, Any]) -> str:
    """What the event adds to the state that it leads to."""
    text = str(found["text"] or found["event"])
    return f"by {found['actor']}" if text == found["to_state"] else text


def stamps(found: dict[str, datetime]) -> list[tuple[str, ...]]:
    """The stamps of a repair as rows: what, when, and how long after the one before."""
    rows: list[tuple[str, ...]] = [("stamp", "at", "after")]
    before: datetime | None = None
    for name in ORDER:
        at = found.get(name)
        took = f"{(at - before).total_seconds():.1f} s" if at and before else ""
        rows.append((name, f"{at.astimezone():%H:%M:%S}" if at else "-", took))
        before = at or before
    for what, start, end in (
        ("fault to proposal", "detected", "recommended"),
        ("approval to return", "approved", "returned"),
    ):
        if start in found and end in found:
            rows.append((what, "", f"{(found[end] - found[start]).total_seconds():.1f} s"))
    return rows


def table(rows: Sequence[Sequence[str]]) -> None:
    """Rows with aligned columns; the first is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            line("  ".join("-" * width for width in widths))
