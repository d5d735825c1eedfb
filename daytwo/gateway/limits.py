"""How fast one node may speak. Per process and in memory: with several gateways a node gets as many times more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """`burst` at once, then `per_second`."""

    burst: float
    per_second: float


class Buckets:
    """One token bucket for each node. Only nodes whose token was good get one, so there are as many as nodes."""

    def __init__(self, rate: Rate, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._monotonic = monotonic
        self._left: dict[tuple[str, str], tuple[float, float]] = {}

    def take(self, cluster: str, node: str, amount: float = 1.0) -> int:
        """Take `amount`, at most a burst; return 0, or the whole seconds after which to try again."""
        now = self._monotonic()
        left, at = self._left.get((cluster, node), (self._rate.burst, now))
        left = min(self._rate.burst, left + (now - at) * self._rate.per_second)
        amount = min(amount, self._rate.burst)
        enough = left >= amount
        self._left[(cluster, node)] = (left - amount if enough else left, now)
        return 0 if enough else max(1, math.ceil((amount - left) / self._rate.per_second))
