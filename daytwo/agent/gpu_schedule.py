"""When the GPUs are read: at once, then slowly, each node at its own moment, more rarely while NVML is in trouble.

Asking a sick driver makes it worse: each call into a stalled GSP blocks for 6 s and is itself named in Xid 119.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from daytwo.agent.seams import GpuReport

LONGEST_BACK_OFF: Final = 8
NAMES_WITHIN: Final = 5.0


class GpuSchedule:
    """One reading at a time. All times are `Clock.uptime`."""

    def __init__(self, poll_seconds: float, uptime: float) -> None:
        self._poll_seconds = poll_seconds
        self._random = random.SystemRandom()
        self._next_at = uptime
        self._names_by = uptime + NAMES_WITHIN
        self._back_off = 1
        self._asked_at: float | None = None
        self._wanted_by: list[str] = []
        self._readings = 0

    def names_known(self, uptime: float) -> bool:
        """True once a reading told the GPUs' names, or has taken too long."""
        return self._readings > 0 or uptime >= self._names_by

    def may_ask(self, uptime: float, wanted_by: Sequence[str]) -> bool:
        """True if a reading is due or a request wants a fresh one, and none is under way."""
        return self._asked_at is None and (bool(wanted_by) or uptime >= self._next_at)

    def asked(self, uptime: float, wanted_by: Sequence[str]) -> None:
        """A reading begins, for the schedule or for these requests."""
        self._asked_at, self._wanted_by = uptime, list(wanted_by)

    def done(self, report: GpuReport, uptime: float) -> tuple[float, list[str]]:
        """A reading has ended: return when it began and the requests that wanted it."""
        asked_at = uptime if self._asked_at is None else self._asked_at
        wanted_by, self._wanted_by, self._asked_at = self._wanted_by, [], None
        # The second reading of each node comes at a moment of its own, so that not all nodes of a job are read at once.
        spread = 1.0 if self._readings else self._random.uniform(0.5, 1.0)
        self._back_off = min(LONGEST_BACK_OFF, self._back_off * 2) if report.trouble else 1
        self._readings += 1
        self._next_at = uptime + self._poll_seconds * self._back_off * spread
        return asked_at, wanted_by

    def wait(self, uptime: float) -> float:
        """Return the seconds until `may_ask` or `names_known` changes by itself."""
        if self._asked_at is None:
            return self._next_at - uptime
        return max(0.0, self._names_by - uptime) if not self.names_known(uptime) else self._poll_seconds
