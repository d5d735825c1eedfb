"""A gateway that dies: nodes report to the next one, and nothing that they said is lost."""

from __future__ import annotations

import asyncio

from daytwo.domain.vocabulary import DecisionKind, State
from tests.crashes.living import SOUND, LivingPlane


async def test_a_repair_goes_on_after_the_gateway_died_while_it_verified(plane: LivingPlane) -> None:
    node, unheard = await plane.faulty(), plane.quiet()
    asked = asyncio.create_task(plane.decide(node, DecisionKind.APPROVE))
    await plane.the_moment(lambda: plane.state(node) == State.VERIFYING, plane.gateway.kill)
    await plane.broken(node=unheard)
    await asyncio.sleep(1.0)
    plane.gateway.start()
    await asked
    assert await plane.ending(node) == SOUND, plane.story(node)
    await plane.proposed(unheard)
