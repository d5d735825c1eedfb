"""A held node, through the whole plane."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from daytwo.domain.vocabulary import NodeState, State
from daytwo.service.holding import HoldRequest, hold, release
from tests.workflows.plane import OPERATOR, Plane


async def told(plane: Plane, act: object, node: str) -> None:
    await asyncio.to_thread(act, plane.store, OPERATOR, HoldRequest(node=node, reason="bench"), datetime.now(UTC))


async def test_on_a_held_node_no_repair_is_opened_until_it_is_released(plane: Plane) -> None:
    node = plane.take()
    await told(plane, hold, node)
    await plane.until(lambda: plane.node(node).state == NodeState.PAUSED, "shown as paused")
    await plane.broken("xid-119", node=node)
    await plane.until(lambda: "xid-119" in plane.findings(node), "the fault is known")
    await asyncio.sleep(1.5)
    assert plane.repair(node) is None
    await told(plane, release, node)
    await plane.proposed(node)


async def test_an_open_repair_is_held_with_its_node_and_released_with_it(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    await told(plane, hold, node)
    await plane.in_state(node, State.HELD)
    await told(plane, release, node)
    await plane.in_state(node, State.PROPOSED)
