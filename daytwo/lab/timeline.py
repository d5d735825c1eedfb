"""The simulated clock and what is to happen when. `Fleet` owns one; nothing in it knows of real time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Event = Callable[[], None]


class Timeline:
    """Events in the order of their simulated second. `now` is seconds since the fleet began."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = count()
        self._events: list[tuple[float, int, Event]] = []

    def after(self, seconds: float, event: Event) -> None:
        """Let `event` happen `seconds` from now. What no longer holds by then is for the event to see."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), event))

    def every(self, seconds: float, event: Event) -> None:
        """Let `event` happen each `seconds`, for ever."""

        def again() -> None:
            event()
            self.after(seconds, again)

        self.after(seconds, again)

    def advance(self, to: float) -> None:
        """Let everything happen up to second `to`. Going back is ignored."""
        while self._events and self._events[0][0] <= to:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = max(self.now, to)
