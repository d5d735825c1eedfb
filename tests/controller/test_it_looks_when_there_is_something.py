"""The reconciler's loop rests while nothing happens, and looks at once when somebody has committed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from daytwo.controller.loops import Clock
from daytwo.store.commits import Commits
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow
from workers.controller import LOOK_SECONDS, when_due


class Looks:
    """Counts looks, and tells the time."""

    def __init__(self) -> None:
        self.count, self.now = 0, datetime(2026, 11, 30, 12, tzinfo=UTC)

    async def step(self) -> None:
        self.count += 1


@pytest.fixture
def commits(store: Store) -> Iterator[Commits]:
    with contextlib.closing(Commits(store)) as watch:
        yield watch


async def test_it_rests_while_nobody_commits(commits: Commits) -> None:
    looks = Looks()
    look = when_due(looks.step, commits, clock=Clock(now=lambda: looks.now))
    for _ in range(5):
        await look()
    assert looks.count == 1


async def test_it_looks_when_somebody_has_committed(store: Store, commits: Commits) -> None:
    looks = Looks()
    look = when_due(looks.step, commits, clock=Clock(now=lambda: looks.now))
    await look()
    with store.write() as session:
        session.add(FreezeRow(scope="*", reason="r", actor="a", at=looks.now))
    await look()
    assert looks.count == 2


async def test_it_looks_for_what_is_due_by_the_clock(commits: Commits) -> None:
    looks = Looks()
    look = when_due(looks.step, commits, clock=Clock(now=lambda: looks.now))
    await look()
    looks.now += timedelta(seconds=LOOK_SECONDS)
    await look()
    assert looks.count == 2
