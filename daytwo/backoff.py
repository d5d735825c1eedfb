"""Waiting before another try: longer each time, never in step with others. For loops and clients of all processes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from random import SystemRandom
from typing import Final, TypeVar

from daytwo.domain.errors import TryAgain, Unreachable

log = logging.getLogger(__name__)

FIRST_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 30.0

R = TypeVar("R")


def spread(seconds: float) -> float:
    """Return about so many seconds, ± a quarter: many that wait for the same do not come at once."""
    return seconds * SystemRandom().uniform(0.75, 1.25)


class Backoff:
    """The waits between tries: doubled each time up to `longest` seconds, each spread by ± a quarter."""

    def __init__(self, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._first = first
        self._longest = longest
        self._tries = 0

    def next(self) -> float:
        """Seconds to wait now."""
        wait = min(self._longest, self._first * 2.0 ** min(self._tries, 30))
        self._tries += 1
        return spread(wait)

    def reset(self) -> None:
        """It worked: the next wait is the first again."""
        self._tries = 0


class Gate:
    """Keeps callers from a peer that does not answer: one of them tries, after growing waits, and the others fail.

    So a peer that hangs costs each loop one timeout now and then, and not one for each thing it wants of it.
    """

    def __init__(
        self, what: str, backoff: Backoff | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._backoff = backoff or Backoff(1.0)
        self._clock = clock
        self._shut_until = 0.0
        self._why = ""
        self._trying = False

    def check(self) -> None:
        """Raise `Unreachable` while it is too early for another try. Whoever passes tries for all."""
        now = self._clock()
        if now < self._shut_until:
            wait = self._shut_until - now
            raise Unreachable(f"{self._what} does not answer: {self._why}; asked again in {wait:.0f} s")
        if self._why:
            self._trying, self._shut_until = True, now + LONGEST_SECONDS

    def failed(self, why: str) -> None:
        """The peer did not answer. Of many that failed together, the first counts."""
        if self._why and not self._trying:
            return
        self._why, self._trying = why, False
        self._shut_until = self._clock() + self._backoff.next()

    def answered(self) -> None:
        """The peer answered, whatever it said."""
        if self._why:
            log.info("%s answers again", self._what)
        self._why, self._shut_until, self._trying = "", 0.0, False
        self._backoff.reset()


async def patiently(
    what: str,
    call: Callable[[], Awaitable[R]],
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> R:
    """Call until it does not raise `TryAgain`; for what a process needs before it can begin. `what` is for the log."""
    backoff, said = Backoff(), ""
    while True:
        try:
            return await call()
        except TryAgain as error:
            if str(error) != said:
                log.warning("waiting for %s: %s", what, error)
            said = str(error)
        await sleep(backoff.next())
