"""A node that was removed: its marks say so, and a repair that a person asks for takes them over and returns it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from daytwo.domain.vocabulary import Action, State
from daytwo.service.asking import RepairRequest, ask
from tests.workflows.plane import LEAD, Plane


async def removed(plane: Plane) -> tuple[str, str]:
    """A node that was removed, and the repair that did it."""
    node = await plane.broken("xid-119")
    await plane.approved(node, action=Action.REMOVE)
    return node, (await plane.in_state(node, State.REMOVED, seconds=60)).id


async def approve_tests(plane: Plane, node: str, before: str) -> None:
    """A person asks for tests of a node, and approves them."""
    request = RepairRequest(node=node, action=Action.VERIFY, reason="the board was replaced")
    await asyncio.to_thread(ask, plane.store, LEAD, request, datetime.now(UTC))
    await plane.until(lambda: (row := plane.repair(node)) and row.id != before and row.state == "proposed", "proposed")
    await plane.approved(node)


def seen(plane: Plane, node: str) -> tuple[str, list[str]]:
    """The reason and the reservations of a node, from the fleet itself."""
    (row,) = plane.ask_lab("GET", f"/nodes/{node}")["nodes"]
    return row["reason"], row["reservations"]


async def test_the_marks_of_a_removed_node_say_so(plane: Plane) -> None:
    node, repair = await removed(plane)
    assert seen(plane, node) == (f"daytwo {repair}: removed", [f"daytwo-{repair}"])


async def test_a_removed_node_that_is_whole_again_returns_by_its_tests(plane: Plane) -> None:
    node, before = await removed(plane)
    await asyncio.to_thread(plane.lab.heal_node, node)
    await approve_tests(plane, node, before)
    await plane.in_state(node, State.SUCCEEDED, seconds=60)
    assert (plane.scheduler_states(node) & {"DRAIN", "RESERVED", "MAINTENANCE"}, seen(plane, node)[1]) == (set(), [])


async def test_a_removed_node_that_is_still_broken_is_tested_under_the_marks_of_the_new_repair(plane: Plane) -> None:
    node, before = await removed(plane)
    await asyncio.to_thread(plane.lab.break_node, node, "xid-79")
    await approve_tests(plane, node, before)
    await plane.in_state(node, State.PROPOSED, State.NEEDS_HELP, seconds=60)
    await plane.until(lambda: before not in seen(plane, node)[0], "the drain is the new repair's")
    assert seen(plane, node)[1] == [f"daytwo-{before}", f"daytwo-{plane.repair(node).id}"]
