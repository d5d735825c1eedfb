"""Lets the scheduler fail in every way while one repair waits, one drains and one verifies; all go on later."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from daytwo.domain.vocabulary import Moment, State
from tests.crashes.living import LivingPlane

S = State
FAILS_SECONDS: Final = 2.0
"""A read that hangs stays hung after that, until its own patience of 5 s ends."""
MODES: Final = ("garbage", "hang", "refuse")
STATES: Final = (S.WAITING, S.DRAINING, S.VERIFYING)


class Seen(NamedTuple):
    """A repair while the scheduler fails."""

    state: str
    events: list[str]


@dataclass
class Storm:
    """What was seen as the scheduler began to fail and as it ended, by how it failed and in which state."""

    nodes: dict[tuple[str, str], str] = field(default_factory=dict)
    began: dict[tuple[str, str], Seen] = field(default_factory=dict)
    ended: dict[tuple[str, str], Seen] = field(default_factory=dict)


async def a_storm(plane: LivingPlane) -> Storm:
    """Let the scheduler fail in every way, with a repair in every state."""
    seen = Storm()
    drained = [await asyncio.to_thread(plane.at_work) for _ in MODES]
    waiting, *_ = await asyncio.gather(
        _waiting_repair(plane), *(plane.broken("xid-154", node=node) for node in drained)
    )
    for mode, draining in zip(MODES, drained, strict=True):
        verifying = await plane.faulty()
        await plane.approved(verifying)
        await plane.in_state(verifying, S.ACTING)
        await plane.approved(draining)
        await _fail(plane, seen, mode, {S.WAITING: waiting, S.DRAINING: draining})
        await _fail(plane, seen, mode, {S.VERIFYING: verifying})
    await asyncio.to_thread(_end_its_job, plane, waiting)
    return seen


async def _waiting_repair(plane: LivingPlane) -> str:
    node = await plane.busy()
    await plane.broken("xid-154", node=node)
    await plane.approved(node, moment=Moment.WHEN_IDLE)
    await plane.in_state(node, S.WAITING)
    return node


async def _fail(plane: LivingPlane, seen: Storm, mode: str, nodes: dict[State, str]) -> None:
    """From the moment that all of these repairs are in their states, for some seconds."""
    await plane.the_moment(
        lambda: all(plane.state(node) == state for state, node in nodes.items()), lambda: plane.outage(mode)
    )
    seen.nodes |= {(mode, state): node for state, node in nodes.items()}
    seen.began |= {(mode, state): _look(plane, node) for state, node in nodes.items()}
    await asyncio.sleep(FAILS_SECONDS)
    seen.ended |= {(mode, state): _look(plane, node) for state, node in nodes.items()}
    await asyncio.to_thread(plane.outage, "none")


def _look(plane: LivingPlane, node: str) -> Seen:
    return Seen(plane.state(node), plane.events(node))


def _end_its_job(plane: LivingPlane, node: str) -> None:
    rows: list[dict[str, Any]] = plane.ask_lab("GET", f"/jobs?nodes={node}")["jobs"]
    plane.by_hand(node, "requeue", target=rows[0]["id"])
