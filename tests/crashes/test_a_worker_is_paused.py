"""Whoever sends is stopped right before the send and wakes up later: it sends nothing late, and nothing twice."""

from __future__ import annotations

import asyncio

from daytwo.domain.vocabulary import DecisionKind
from tests.crashes.living import SEND_SECONDS, SOUND, LivingPlane
from tests.crashes.processes import children_of, spin


async def test_a_worker_that_is_paused_right_before_its_send_boots_the_node_once(plane: LivingPlane) -> None:
    node = await plane.faulty()
    asked = asyncio.create_task(plane.decide(node, DecisionKind.APPROVE))
    await plane.the_moment(lambda: is_intended(plane, node), lambda: pause_before_the_last_look(plane))
    await asyncio.sleep(SEND_SECONDS + 1.0)
    assert plane.acts(node, "reboot") == 0
    plane.worker.go_on()
    await asked
    assert await plane.ending(node) == SOUND, plane.story(node)
    assert plane.late_reboots(node) == [], plane.story(node)


def is_intended(plane: LivingPlane, node: str) -> bool:
    intent = plane.reboot(node)
    return intent is not None and intent.state == "intended"


def pause_before_the_last_look(plane: LivingPlane) -> None:
    """The last look is a write: while the store is locked, the sender is armed and nobody gives it the word."""
    with plane.locked_store():
        spin(lambda: children_of(plane.worker.pid), "a sender is armed", SEND_SECONDS)
        plane.worker.pause()
