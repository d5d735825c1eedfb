"""How transactions are made to meet: many begin at once, or one begins while another is open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sqlmodel import Session

from daytwo.store.engine import Store

R = TypeVar("R")
MOMENT = 0.15
"""Seconds in which whoever is not kept waiting is done."""


def at_once(count: int, act: Callable[[int], R]) -> list[R]:
    """Call `act` in so many threads, none before all are there; return what they returned."""
    start = threading.Barrier(count)

    def begin(number: int) -> R:
        start.wait(20)
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


@dataclass
class Meanwhile(Generic[R]):
    """What a thread does while somebody's transaction is open."""

    _done: Future[R] | None = field(default=None)
    waited: bool = False

    def begins(self, pool: ThreadPoolExecutor, act: Callable[[], R], there: threading.Event) -> None:
        self._done = pool.submit(act)
        assert there.wait(10)
        self.waited = not wait([self._done], MOMENT).done

    def result(self) -> R:
        assert self._done is not None
        return self._done.result(20)


@contextmanager
def while_open(
    store: Store, first: Callable[[Session], object], then: Callable[[], R], *, there: threading.Event | None = None
) -> Iterator[Meanwhile[R]]:
    """Do `first` in a transaction; begin `then` in a thread while it is open; give it back once it is committed.

    `then` takes until `there` to come to what is to meet; without it, it is there at once.
    """
    meanwhile: Meanwhile[R] = Meanwhile()
    with ThreadPoolExecutor(1) as pool:
        with store.write() as session:
            first(session)
            session.flush()
            meanwhile.begins(pool, then, there or at_once_there())
        yield meanwhile


def at_once_there() -> threading.Event:
    """An event that has happened."""
    event = threading.Event()
    event.set()
    return event
