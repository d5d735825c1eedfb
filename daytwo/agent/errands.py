"""Requests that take the agent a while: to let go of the GPUs (`quiesce`), to collect evidence. Used by `core`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from daytwo.agent.requests import Requests
from daytwo.agent.seams import Clock, Collector, Gpus
from daytwo.agent.spool import Spool

LONGEST_QUIET: Final = 3_600.0
"""Then the GPUs are looked at again, whoever forgot to end it."""
COLLECT_WITHIN: Final = 20.0
LEFT_TO_ANSWER: Final = 3.0


class Errands:
    """What was begun for requests and has not ended. All times are `Clock.uptime`."""

    def __init__(
        self, *, boot_id: str, requests: Requests, gpus: Gpus, collector: Collector, spool: Spool, clock: Clock
    ) -> None:
        self._boot_id, self._requests, self._spool, self._clock = boot_id, requests, spool, clock
        self._gpus, self._collector = gpus, collector
        self._letting_go: list[str] = []
        self._collecting: list[str] = []
        remembered = spool.recall("quiet", {})
        self._quiet_until = float(remembered.get("until", 0.0)) if remembered.get("boot_id") == boot_id else 0.0

    @property
    def is_quiet(self) -> bool:
        """True while the GPUs are not to be touched. It ends by itself."""
        return self._clock.uptime() < self._quiet_until

    def step(self, readings: Callable[[], dict[str, Any]]) -> None:
        """Take what has ended, begin what is wanted. `readings` is what the agent knows of its node."""
        self._end_letting_go()
        self._end_collecting()
        if (wanted := self._requests.open("quiesce")) and not self._letting_go:
            self._quiesce(wanted)
        if (wanted := self._requests.open("collect-evidence")) and not self._collecting:
            seconds = min(COLLECT_WITHIN, self._requests.seconds_left(wanted) - LEFT_TO_ANSWER)
            self._collecting = wanted
            self._collector.ask(max(1.0, seconds), readings() | {"quiesced": self.is_quiet})

    def wait(self, uptime: float) -> float | None:
        """Return the seconds until the quiet ends, or `None`."""
        return self._quiet_until - uptime if self.is_quiet else None

    def _quiesce(self, wanted: list[str]) -> None:
        """The newest request counts; 0 seconds end the quiet."""
        seconds = min(LONGEST_QUIET, max(0.0, self._requests.number(wanted[-1], "seconds")))
        self._quiet_until = self._clock.uptime() + seconds
        self._spool.remember("quiet", {"boot_id": self._boot_id, "until": self._quiet_until})
        if seconds:
            self._letting_go = wanted
            self._gpus.let_go()
        else:
            self._requests.finish(wanted, {"quiet_seconds": 0.0})

    def _end_letting_go(self) -> None:
        gone = self._gpus.collect_let_go()
        if gone is None:
            return
        left = max(0.0, self._quiet_until - self._clock.uptime())
        said = {"let_go": gone.done, "holders": list(gone.holders), "error": gone.error, "quiet_seconds": left}
        self._requests.finish(self._letting_go, said)
        self._letting_go = []

    def _end_collecting(self) -> None:
        result = self._collector.collect()
        if result is not None:
            self._requests.finish(self._collecting, result)
            self._collecting = []
