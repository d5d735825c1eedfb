"""Bursts: five changes of one fault on one entity at once, then one a second, the others folded in. Used by `core`.

One fault prints up to 800,000 lines (NVSentinel #1120). Counts are never lost here: fewer changes carry all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from daytwo.agent.changes import Change, from_json

AT_ONCE: Final = 5
PER_SECOND: Final = 1.0
ALMOST_ONE: Final = 1.0 - 1e-6
"""`due_at` is rounded: what is due at a moment must go out at that moment, or the caller would spin."""


@dataclass(slots=True)
class _Bucket:
    """What may still go out at once, as of `at`, and what waits."""

    left: float
    at: float
    waiting: Change | None = None

    def refill(self, uptime: float) -> None:
        self.left = min(AT_ONCE, self.left + max(0.0, uptime - self.at) * PER_SECOND)
        self.at = uptime

    @property
    def due_at(self) -> float:
        return self.at + (1.0 - self.left) / PER_SECOND


class Folding:
    """Lets changes through at the rate above. All times are `Clock.uptime`."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def add(self, change: Change, uptime: float) -> Change | None:
        """Return what to send now, or `None` if `change` was folded into what waits."""
        bucket = self._buckets.setdefault(change.key, _Bucket(AT_ONCE, uptime))
        bucket.refill(uptime)
        bucket.waiting = bucket.waiting.then(change) if bucket.waiting else change
        return self._take(bucket)

    def due(self, uptime: float) -> list[Change]:
        """Return the folded changes whose turn has come."""
        released = []
        for key, bucket in list(self._buckets.items()):
            bucket.refill(uptime)
            if change := self._take(bucket):
                released.append(change)
            elif bucket.left >= AT_ONCE:
                del self._buckets[key]
        return released

    def flush(self) -> list[Change]:
        """Return all that waits, at once: the agent ends."""
        waiting = self._waiting()
        self._buckets.clear()
        return waiting

    def next_due(self) -> float | None:
        """Return the uptime at which `due` has something, or `None`."""
        return min((bucket.due_at for bucket in self._buckets.values() if bucket.waiting), default=None)

    def to_json(self) -> list[dict[str, Any]]:
        """Return what waits: it is spooled beside the place in the kernel log, so that a crash loses none of it."""
        return [change.to_json() for change in self._waiting()]

    def restore(self, entries: Iterable[dict[str, Any]], uptime: float) -> None:
        """Take back what `to_json` returned."""
        for entry in entries:
            change = from_json(entry)
            self._buckets[change.key] = _Bucket(0.0, uptime, change)

    def _waiting(self) -> list[Change]:
        return [bucket.waiting for bucket in self._buckets.values() if bucket.waiting]

    @staticmethod
    def _take(bucket: _Bucket) -> Change | None:
        if bucket.waiting is None or bucket.left < ALMOST_ONE:
            return None
        change, bucket.waiting = bucket.waiting, None
        bucket.left = max(0.0, bucket.left - 1.0)
        return change
