"""How fast one node may speak. Per process and in memory: with several gateways a node gets as many times more.

`daytwo.gateway.app` asks. A token that was good before is limited before the store is asked about it, so that a node
in haste costs the others no look-ups.
"""

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


class Familiar:
    """Whose tokens were good when they were last seen, by hash. It lets nobody in: it only names whom to slow down."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._nodes: dict[str, tuple[str, str]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def node_of(self, token_hash: str) -> tuple[str, str] | None:
        """Return cluster and node, or `None` for a token that is new here."""
        return self._nodes.get(token_hash)

    def meet(self, token_hash: str, cluster: str, node: str) -> None:
        """Remember a token that is good; the oldest is forgotten where there are too many."""
        if len(self._nodes) >= self._most and token_hash not in self._nodes:
            del self._nodes[next(iter(self._nodes))]
        self._nodes[token_hash] = (cluster, node)

    def forget(self, token_hash: str) -> None:
        """The token is not good any more."""
        self._nodes.pop(token_hash, None)


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
