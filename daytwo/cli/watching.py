"""Follows a repair, one plain line an event."""

from __future__ import annotations

import time
from typing import Any, Final

import click

from daytwo.backoff import spread
from daytwo.cli import exit_codes, output
from daytwo.cli.client import Service
from daytwo.cli.failure import Failure
from daytwo.cli.repair_text import event_line

WAIT_SECONDS: Final = 20
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 15.0


def follow(service: Service, repair: str, seconds: int | None) -> int:
    """Print events until the repair ends. Returns 0 or 1; raises `Failure` with 6 when `seconds` have passed."""
    end = None if seconds is None else time.monotonic() + seconds
    seen, said = 0, ""
    while True:
        left = WAIT_SECONDS if end is None else max(0.0, min(WAIT_SECONDS, end - time.monotonic()))
        found = _ask(service, repair, after=seen, wait=left, end=end)
        for event in found["events"]:
            click.echo(event_line(event))
            seen = event["number"]
        if not found["open"] and not found["events"]:
            return _ended(found)
        said = _say_if_waiting(service, found, said)
        if end is not None and time.monotonic() >= end:
            raise _late(found, seconds)


def _ask(service: Service, repair: str, *, after: int, wait: float, end: float | None) -> dict[str, Any]:
    """The next events. A service that went away while it is followed is waited for, with growing waits."""
    pause = FIRST_PAUSE
    while True:
        try:
            found: dict[str, Any] = service.get(f"/v1/repairs/{repair}/progress", after=after, wait=wait)
            return found
        except Failure as failure:
            late = end is not None and time.monotonic() + pause >= end
            if failure.exit_code != exit_codes.UNREACHABLE or after == 0 or late:
                raise
            if pause == FIRST_PAUSE:
                output.note(f"{failure.message}; waiting for it")
        time.sleep(spread(pause))
        pause = min(2 * pause, LONGEST_PAUSE)


def _say_if_waiting(service: Service, found: dict[str, Any], before: str) -> str:
    """Say, once as long as nothing changes, whom or what it waits for; returns what was said."""
    state = str(found["state"])
    if state in ("proposed", "needs-help", "held"):
        said = f"It waits for a person ({state}): daytwo repairs show {found['id']}"
    elif state in ("approved", "waiting") and (waiting := _waits(service, found)):
        said = f"It waits: {waiting.removeprefix('waits ')}"
    else:
        return before if state == "waiting" else ""
    if said != before:
        output.note(said)
    return said


def _waits(service: Service, found: dict[str, Any]) -> str:
    return str(service.get(f"/v1/repairs/{found['id']}")["waiting_for"])


def _ended(found: dict[str, Any]) -> int:
    outcome = f": {output.clean(found['outcome'])}" if found["outcome"] else ""
    click.echo(f"{output.with_glyph(found['state'])}{outcome}")
    return exit_codes.OK if found["state"] == "succeeded" else exit_codes.FAILED


def _late(found: dict[str, Any], seconds: int | None) -> Failure:
    return Failure(
        f"repair {found['id']} has not ended after {output.lasting(seconds or 0)}; it is {found['state']}",
        why="Repairs take as long as jobs, boots and tests do.",
        following=f"daytwo repairs watch {found['id']}",
        exit_code=exit_codes.TIMED_OUT,
    )
