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
        self.started, self.late_after = START, 0.0
        self.says: Callable[[], tuple[NodeFacts, ...]] = self.idle
        lease = acquire(store, "watch:east", "me", now=START, seconds=15)
        assert lease is not None
        scheduler: Any = self
        clock = Clock(now=lambda: self.now)
        self.watch = Watch(store, "east", scheduler, lease, unknown_after_seconds=60, clock=clock)

    async def facts(self) -> tuple[NodeFacts, ...]:
        return self.says()

    async def started_at(self) -> datetime:
        return self.started

    async def late_after_seconds(self) -> float:
        return self.late_after

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


def down(watched: Watched, *states: str) -> None:
    """Have Slurm say of a node that it is silent, in these words."""
    watched.says = lambda: (
        NodeFacts(node="gpu-01", states=states, responding=False, at=watched.now),
        NodeFacts(node="gpu-02", states=("IDLE",), at=watched.now),
    )


def found(watched: Watched) -> list[tuple[str, str]]:
    with watched.store.read() as session:
        return [(row.fault, row.status) for row in session.exec(select(FindingRow))]


@pytest.mark.parametrize(("seconds", "faults"), [(299, []), (301, [("slurm-down", "firing")])])
async def test_a_node_is_not_found_down_before_slurmctld_can_know_and_is_found_then(
    watched: Watched, seconds: float, faults: list[tuple[str, str]]
) -> None:
    await watched.step()
    watched.started, watched.late_after = watched.now, 300
    down(watched, "DOWN", "NOT_RESPONDING")
    await watched.step()
    await watched.step(seconds - 5)
    await watched.step(5)
    assert found(watched) == faults


async def test_a_node_that_was_down_stays_down_until_a_slurmctld_that_was_restarted_hears_it(watched: Watched) -> None:
    down(watched, "DOWN", "NOT_RESPONDING")
    await watched.step()
    watched.started, watched.late_after = watched.now, 300
    down(watched, "UNKNOWN")
    for _ in range(20):
        await watched.step(30)
    assert found(watched) == [("slurm-down", "firing")]
    watched.says = watched.idle
    await watched.step()
    assert found(watched) == [("slurm-down", "cleared")]


@pytest.mark.parametrize(("ahead", "faults"), [(-7200, [("slurm-down", "firing")]), (7200, [("slurm-down", "firing")])])
async def test_a_slurmctld_whose_clock_is_wrong_mutes_no_longer(
    watched: Watched, ahead: float, faults: list[tuple[str, str]]
) -> None:
    watched.started, watched.late_after = START + timedelta(seconds=ahead), 300
    down(watched, "DOWN", "NOT_RESPONDING")
    await watched.step()
    await watched.step(300)
    assert found(watched) == faults


async def test_a_restart_that_was_seen_from_here_is_timed_by_our_clock(watched: Watched) -> None:
    await watched.step()
    watched.started, watched.late_after = START - timedelta(hours=2), 300
    down(watched, "DOWN", "NOT_RESPONDING")
    await watched.step(5)
    await watched.step(200)
    assert found(watched) == []
