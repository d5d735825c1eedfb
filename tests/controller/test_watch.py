"""A watch loop: what a scheduler says is kept, what it cannot say is unknown, and nothing is forgotten silently."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import select

from daytwo.controller.leases import LeaseLost, acquire
from daytwo.controller.loops import Clock
from daytwo.controller.watch import Watch
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.errors import UnknownAnswer, Unreachable
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import ClusterKind
from daytwo.intake import declare
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRow

START = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Watched:
    """A scheduler that says what it is told to, and the loop that watches it."""

    def __init__(self, store: Store) -> None:
        group = NodeGroup(nodes=("gpu-01", "gpu-02"))
        declare(store, ClusterDefinition(name="east", kind=ClusterKind.SLURM, groups=(group,)), now=START)
        self.store, self.now = store, START
        self.says: Callable[[], tuple[NodeFacts, ...]] = self.idle
        lease = acquire(store, "watch:east", "me", now=START, seconds=15)
        assert lease is not None
        scheduler: Any = self
        clock = Clock(now=lambda: self.now)
        self.watch = Watch(store, "east", scheduler, lease, unknown_after_seconds=60, clock=clock)

    async def facts(self) -> tuple[NodeFacts, ...]:
        return self.says()

    async def started_at(self) -> datetime:
        return START

    def idle(self) -> tuple[NodeFacts, ...]:
        return tuple(NodeFacts(node=name, states=("IDLE",), at=self.now) for name in ("gpu-01", "gpu-02"))

    def fails(self, error: Exception) -> None:
        def says() -> tuple[NodeFacts, ...]:
            raise error

        self.says = says

    async def step(self, seconds: float = 5) -> tuple[str, ...]:
        self.now += timedelta(seconds=seconds)
        return await self.watch.step()

    def known(self) -> list[str]:
        with self.store.read() as session:
            return [row.name for row in session.exec(select(NodeRow)) if row.facts is not None]


@pytest.fixture
def watched(store: Store) -> Watched:
    return Watched(store)


async def test_facts_are_kept(watched: Watched) -> None:
    assert await watched.step() == ("gpu-01", "gpu-02")
    assert watched.known() == ["gpu-01", "gpu-02"]


async def test_what_stays_the_same_writes_nothing(watched: Watched) -> None:
    await watched.step()
    assert await watched.step() == ()


@pytest.mark.parametrize(
    "error", [Unreachable("refused"), UnknownAnswer("not JSON"), ValueError("a bug"), TimeoutError()]
)
async def test_a_scheduler_that_cannot_be_read_is_unknown_after_a_while(watched: Watched, error: Exception) -> None:
    await watched.step()
    watched.fails(error)
    assert [await watched.step(30) for _ in range(3)] == [(), (), ("gpu-01", "gpu-02")]
    assert watched.known() == []


async def test_a_short_failure_forgets_nothing(watched: Watched) -> None:
    await watched.step()
    for _ in range(5):
        watched.fails(Unreachable("refused"))
        await watched.step(50)
        watched.says = watched.idle
        await watched.step()
    assert watched.known() == ["gpu-01", "gpu-02"]


async def test_a_failure_is_said_once_for_each_change(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="daytwo.controller.watch")
    for message in ("refused", "refused", "no route", "no route"):
        watched.fails(Unreachable(message))
        await watched.step(20)
    watched.says = watched.idle
    await watched.step(20)
    own = [record for record in caplog.records if record.name == "daytwo.controller.watch"]
    said = [record.getMessage().rpartition(": ")[2] for record in own]
    assert said == ["refused", "no route", "the scheduler answers again"]


async def test_a_scheduler_without_nodes_makes_them_unknown(watched: Watched) -> None:
    await watched.step()
    watched.says = lambda: ()
    assert await watched.step() == ("gpu-01", "gpu-02")


async def test_a_watch_that_lost_its_lease_writes_nothing(watched: Watched) -> None:
    acquire(watched.store, "watch:east", "another", now=START + timedelta(seconds=60), seconds=15)
    watched.says = lambda: (NodeFacts(node="gpu-01", states=("DRAIN",), drained_by="scheduler", at=watched.now),)
    with pytest.raises(LeaseLost):
        await watched.step()
    with watched.store.read() as session:
        assert session.exec(select(FindingRow)).all() == []
    assert watched.known() == []
