"""How the CLI decides: what was read is what is decided on, and it waits until the decision has ended."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import click

from daytwo.cli import exit_codes, output
from daytwo.cli.client import Service
from daytwo.cli.failure import Failure
from daytwo.cli.repair_text import as_text

WAIT_SECONDS: Final = 10
GOOD: Final = {"accepted": "Follow it", "counted": "Nothing is done until somebody else approves too"}
ENDS: Final = {"refused": exit_codes.FORBIDDEN, "void": exit_codes.CHANGED}
WHY: Final = {
    "refused": "A rule forbids it, as it is now. Nothing was done.",
    "void": "It came too late: the repair had moved on. Nothing was done.",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision to be made; `more` are further fields of the API's request, `None` ones are left out."""

    kind: str
    repair: str
    revision: int
    request_id: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The request to the service."""
        body = {
            "request_id": self.request_id or f"cli-{uuid.uuid4()}",
            "repair_id": self.repair,
            "revision": self.revision,
            "kind": self.kind,
        }
        return body | {name: value for name, value in self.more.items() if value is not None}


def revision_on_screen(service: Service, repair: str, *, yes: bool) -> int:
    """Show the proposal, ask, and return the revision that was shown. Never asks where nobody can answer."""
    if not (sys.stdin.isatty() and output.on_terminal()):
        raise click.UsageError(
            f"Missing option '--revision': without a terminal nobody is asked. See: daytwo repairs show {repair}"
        )
    found = service.get(f"/v1/repairs/{repair}")
    click.echo(as_text(found))
    if not yes:
        click.confirm(f"\nDecide on revision {found['revision']} of {found['id']}?", abort=True)
    return int(found["revision"])


def decide(service: Service, wish: Wish, seconds: int) -> int:
    """Make the decision and wait for its end. Returns 0 when accepted or counted, else raises `Failure`."""
    decision = service.post("/v1/decisions", wish.body(), following=f"daytwo repairs show {wish.repair}")
    output.note(f"Recorded as {decision['id']}; waiting for the repair to take it.")
    decision = _until_ended(service, decision, seconds)
    status = decision["status"]
    if status in GOOD:
        click.echo(f"{output.with_glyph(status)}: {wish.kind} {wish.repair} revision {wish.revision}{_why(decision)}")
        output.note(f"{GOOD[status]}: daytwo repairs watch {wish.repair}")
        return exit_codes.OK
    raise _not_accepted(wish, decision) if status in ENDS else _late(wish, decision, seconds)


def _until_ended(service: Service, decision: dict[str, Any], seconds: int) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while decision["status"] == "pending" and (left := end - time.monotonic()) > 0:
        decision = service.get(f"/v1/decisions/{decision['id']}", wait=min(WAIT_SECONDS, left))
    return decision


def _not_accepted(wish: Wish, decision: dict[str, Any]) -> Failure:
    status = decision["status"]
    return Failure(
        f"{status}: {wish.kind} {wish.repair} revision {wish.revision}{_why(decision)}",
        why=WHY[status],
        following=f"daytwo repairs show {wish.repair}",
        exit_code=ENDS[status],
    )


def _late(wish: Wish, decision: dict[str, Any], seconds: int) -> Failure:
    return Failure(
        f"decision {decision['id']} has not ended after {seconds} s{_why(decision)}",
        why="It is recorded and will be delivered; a freeze, or a worker that is away, makes it wait.",
        following=f"daytwo status; daytwo repairs show {wish.repair}",
        exit_code=exit_codes.TIMED_OUT,
    )


def _why(decision: dict[str, Any]) -> str:
    return f" ({output.clean(decision['status_reason'])})" if decision["status_reason"] else ""
