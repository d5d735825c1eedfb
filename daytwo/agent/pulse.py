"""What the agent says of itself each minute: check states and inventory when they changed, answers to requests."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from daytwo.wire import Answer, CheckState


class Pulse:
    """Builds the body of a pulse and remembers what the gateway has confirmed."""

    def __init__(self) -> None:
        self._confirmed = ""
        self._sending = ""
        self._send_full = False

    def body(
        self, checks: dict[str, CheckState], inventory: dict[str, Any] | None, answers: list[Answer]
    ) -> dict[str, Any]:
        """Return the changing part of a pulse: in full if the gateway does not have this digest yet."""
        self._sending = digest(checks, inventory)
        changed = self._send_full or self._sending != self._confirmed
        return {
            "digest": self._sending,
            "checks": checks if changed else None,
            "inventory": inventory if changed else None,
            "answers": answers,
        }

    def confirm(self, *, send_full: bool) -> None:
        """The gateway has the last body; with `send_full` it wants all of it in the next."""
        self._confirmed, self._send_full = self._sending, send_full

    def is_news(self, checks: dict[str, CheckState], inventory: dict[str, Any] | None) -> bool:
        """True if the gateway does not know this yet."""
        return digest(checks, inventory) != self._confirmed


def digest(checks: dict[str, CheckState], inventory: dict[str, Any] | None) -> str:
    """Return a short name for these states and this inventory."""
    text = json.dumps([checks, inventory], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
