"""Temporal and PostgreSQL are stopped, killed and started again under a plane of processes with open repairs.

OUTAGE_SECONDS=180 makes minutes of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import pytest

from daytwo.domain.vocabulary import DecisionKind, State
from tests.outages.living import Meanwhile, StoppablePlane
from tests.postgres import Postgres

S = State
SECONDS: Final = float(os.environ.get("OUTAGE_SECONDS", "6"))
NOTICED_SECONDS: Final = 30.0
"""A Temporal that hangs is given 12 s, twice where a call was under way."""
BUSY: Final = 0.35
"""Of a core. A loop that spins takes a whole one; these machines are shared, and tests run beside."""


def assert_calm(seen: Meanwhile, away: str) -> None:
    """Nobody has died or spun, and people were answered and told what is away."""
    assert seen.died == []
    assert max(seen.cpu_share.values()) < BUSY, seen.cpu_share
    assert seen.slowest < 2, "the status is to be there within a second, and a test machine is slow"
    assert (away,) == seen.away[-1]


async def assert_repaired(plane: StoppablePlane, node: str) -> None:
    """The node was booted once, and its repair has ended as every other."""
    await plane.in_state(node, S.SUCCEEDED, seconds=100)
    assert plane.acts(node, "reboot") == 1
    assert [state for _, state in plane.intents(node) if state != "proven"] == []


@contextmanager
def temporal_hangs(plane: StoppablePlane) -> Iterator[None]:
    assert plane.temporal is not None
    plane.temporal.pause()
    try:
        yield
    finally:
        plane.temporal.go_on()


@contextmanager
def temporal_is_down(plane: StoppablePlane) -> Iterator[None]:
    assert plane.temporal is not None
    plane.temporal.kill()
    try:
        yield
    finally:
        plane.temporal.start()


@pytest.mark.parametrize("outage", [temporal_hangs, temporal_is_down])
async def test_without_temporal_nodes_are_contained_decisions_kept_and_repairs_go_on_later(
    plane: StoppablePlane, outage: Callable[..., AbstractContextManager[None]]
) -> None:
    decided = await plane.broken()
    await plane.proposed(decided)
    # A job that starts before that has an owner of whom the approval says nothing.
    await plane.until(lambda: "DRAIN" in plane.scheduler_states(decided), "it is contained")
    with outage(plane):
        decision = await plane.written(decided, DecisionKind.APPROVE)
        fresh = await plane.broken()
        await plane.until(lambda: "DRAIN" in plane.scheduler_states(fresh), "it is contained meanwhile", 45)
        await plane.watched(NOTICED_SECONDS, lambda: "temporal" in plane.status()["away"])
        seen = await plane.watched(SECONDS)
    assert_calm(seen, "temporal")
    assert (await plane.ended(decision, 60)).status == "accepted", plane.story(decided)
    await asyncio.gather(assert_repaired(plane, decided), plane.proposed(fresh))
    await plane.until(plane.reached, "nothing is away any more", 60)


@contextmanager
def postgres_is_down(postgres: Postgres) -> Iterator[None]:
    postgres.stop(2)
    try:
        yield
    finally:
        postgres.start()


@pytest.mark.parametrize("outage", [Postgres.hanging, postgres_is_down])
async def test_without_its_store_everything_waits_and_nothing_that_nodes_say_is_lost(
    plane: StoppablePlane, postgres: Postgres, outage: Callable[..., AbstractContextManager[None]]
) -> None:
    acting = await plane.broken()
    await plane.approved(acting)
    with outage(postgres):
        said = plane.take()
        await asyncio.to_thread(plane.lab.break_node, said, "xid-79")
        seen = await plane.watched(SECONDS)
    assert_calm(seen, "store")
    await asyncio.gather(assert_repaired(plane, acting), plane.in_state(said, S.PROPOSED, seconds=100))
    await plane.until(plane.reached, "nothing is away any more", 60)
