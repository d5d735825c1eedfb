"""Has the agent seen and kept everything? Kernel records lost or damaged, records dropped, a log unreadable."""

from __future__ import annotations

from typing import Final

from daytwo.agent.checks.levels import Levels
from daytwo.agent.seams import Clock, LogStatus
from daytwo.wire import CheckState, node_entity

MISSED: Final = "agent-missed-records"
CLEAN_AFTER_SECONDS: Final = 3_600.0
UNREADABLE_AFTER_SECONDS: Final = 10.0
"""A log takes a moment to open, and a file a moment to come back after rotation."""


class Completeness:
    """Check `kernel-log`. Each kind of trouble is reported once; an hour without any ends it."""

    def __init__(self, levels: Levels, clock: Clock) -> None:
        self._levels, self._clock = levels, clock
        self._counts: tuple[int, int, int] = (0, 0, 0)
        self._last_trouble: float | None = None
        self._readable_at = clock.uptime()

    def look(self, log: LogStatus, dropped: int) -> CheckState:
        """Judge what the log says of itself and how many records the spool has dropped since the agent started."""
        uptime, counts = self._clock.uptime(), (log.lost, log.damaged, dropped)
        if log.readable:
            self._readable_at = uptime
        if counts != self._counts or uptime - self._readable_at >= UNREADABLE_AFTER_SECONDS:
            self._counts, self._last_trouble = counts, uptime
        holds = self._last_trouble is not None and uptime - self._last_trouble < CLEAN_AFTER_SECONDS
        self._levels.set(
            MISSED,
            node_entity(),
            holds,
            source="agent",
            evidence=_evidence(log, dropped) if holds else "nothing was missed for an hour",
            detail={"lost": log.lost, "damaged": log.damaged, "dropped": dropped},
        )
        if not log.readable:
            return "unknown"
        return "firing" if holds else "ok"


def _evidence(log: LogStatus, dropped: int) -> str:
    said = [
        log.error if not log.readable else "",
        f"{log.lost} kernel records were overwritten before they could be read" if log.lost else "",
        f"{log.damaged} kernel records were damaged" if log.damaged else "",
        f"{dropped} records were dropped from the spool" if dropped else "",
    ]
    return "; ".join(each for each in said if each)
