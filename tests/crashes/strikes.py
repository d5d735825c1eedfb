"""Kills the worker at chosen moments of a repair; each repair is struck once, and the next worker starts at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from daytwo.domain.vocabulary import DecisionKind, State
from tests.crashes.living import LivingPlane

Question = Callable[[LivingPlane, str], object]

ANSWER_LOST: Final = "after a reboot whose answer never came"


def _decided(plane: LivingPlane, node: str) -> bool:
    return plane.state(node) in (State.APPROVED, State.QUARANTINING)


def _sending(plane: LivingPlane, node: str) -> bool:
    intent = plane.reboot(node)
    return intent is not None and intent.state in ("sending", "sent")


def _ordered(plane: LivingPlane, node: str) -> bool:
    return bool({"REBOOT_REQUESTED", "REBOOT_ISSUED"} & plane.scheduler_states(node))


def _tested(plane: LivingPlane, node: str) -> bool:
    return plane.state(node) == State.REJOINING


MOMENTS: Final[dict[str, Question]] = {
    "right after the decision": _decided,
    "as it sends the reboot": _sending,
    ANSWER_LOST: _ordered,
    "right before the release": _tested,
}


async def struck_repairs(plane: LivingPlane) -> dict[str, str]:
    """Strike one repair at each moment; the nodes by moment."""
    struck = {moment: await plane.faulty() for moment in MOMENTS}
    for moment, node in struck.items():
        await _strike(plane, node, moment)
    return struck


async def _strike(plane: LivingPlane, node: str, moment: str) -> None:
    asked = asyncio.create_task(plane.decide(node, DecisionKind.APPROVE))
    if moment == ANSWER_LOST:
        await plane.the_moment(
            lambda: plane.state(node) == State.ACTING, lambda: plane.outage("lose-answer", path="/acts")
        )
    await plane.the_moment(lambda: MOMENTS[moment](plane, node), lambda: plane.restart(plane.worker))
    await asyncio.to_thread(plane.outage, "none")
    await asked
