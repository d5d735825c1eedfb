"""Another writer holds the store for seconds: everybody waits, and nothing is lost."""

from __future__ import annotations

import asyncio
import time

from daytwo.domain.vocabulary import DecisionKind, State
from tests.crashes.living import SOUND, LivingPlane

LOCKED_SECONDS = 3.0


async def test_a_store_that_is_locked_in_the_middle_loses_nothing(plane: LivingPlane) -> None:
    acting, decided = await asyncio.gather(plane.faulty(), plane.faulty())
    reported = plane.quiet()
    await plane.approved(acting)
    locked = asyncio.create_task(plane.the_moment(lambda: plane.state(acting) == State.ACTING, lambda: hold(plane)))
    await plane.until(plane.is_locked, "the store is locked")
    await plane.broken(node=reported)
    decision = await plane.decide(decided, DecisionKind.APPROVE)
    await locked
    assert (await plane.ended(decision)).status == "accepted", plane.story(decided)
    assert await plane.ending(acting) == SOUND, plane.story(acting)
    assert await plane.ending(decided) == SOUND, plane.story(decided)
    await plane.proposed(reported)


def hold(plane: LivingPlane) -> None:
    with plane.locked_store():
        time.sleep(LOCKED_SECONDS)
