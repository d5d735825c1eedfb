"""One run: everything starts, nodes live, processes are struck, all comes to its end, and it is counted."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.chaos.counting import count
from tests.chaos.lives import LIFE_SECONDS, Lives
from tests.chaos.plane import BACKEND, POSTGRES, TEMPORAL, ChaosPlane, a_chaos_plane
from tests.chaos.report import Result
from tests.chaos.strikes import Strikes, matrix
from tests.chaos.watching import Watch

ALL: Final = ("worker", "controller", "gateway", "service", "agents", TEMPORAL, POSTGRES, BACKEND)
TELL_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Order:
    """What is asked of a run."""

    kills: int
    seed: int
    at_random: bool = False
    only: tuple[str, ...] = ()
    nodes: int = 16
    postgres: bool = True

    def processes(self, plane: ChaosPlane) -> list[str]:
        """Who is struck: of those that are there."""
        return [name for name in ALL if name in plane.victims and (not self.only or name in self.only)]


async def run(folder: Path, order: Order, say: Callable[[str], None]) -> Result:
    """Carry it out; the result says what went wrong."""
    began = time.time()
    async with a_chaos_plane(folder, nodes=order.nodes, seed=order.seed, postgres=order.postgres) as plane:
        say(f"everything answers after {time.time() - began:.0f} s")
        with Watch(plane.store) as watch:
            strikes = Strikes(plane, watch, _rng(order))
            lives = Lives(plane, watch, _rng(order), wanted=strikes.wanted)
            async with _telling(strikes, lives, order, say):
                seconds = await _live_and_strike(strikes, lives, plane, order)
        counts = await asyncio.to_thread(count, plane)
        store = "PostgreSQL" if order.postgres else "SQLite"
        return Result(order.seed, seconds, order.nodes, store, strikes.done, lives.all, counts)


async def _live_and_strike(strikes: Strikes, lives: Lives, plane: ChaosPlane, order: Order) -> float:
    """Until all lives have ended. Returns for how long there were strikes."""
    living = asyncio.create_task(lives.run())
    began = time.time()
    try:
        await _strike(strikes, plane, order)
        seconds = time.time() - began
        lives.stopping = True
        await asyncio.wait_for(living, LIFE_SECONDS + 60)
    finally:
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)
    return seconds


async def _strike(strikes: Strikes, plane: ChaosPlane, order: Order) -> None:
    processes = order.processes(plane)
    if order.at_random:
        await strikes.at_random(processes, order.kills)
    else:
        await strikes.over_matrix(matrix(processes, order.kills, _rng(order)))


def _rng(order: Order) -> random.Random:
    return random.Random(order.seed)


@contextlib.asynccontextmanager
async def _telling(strikes: Strikes, lives: Lives, order: Order, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Say now and then how far it is, while the block lasts."""
    telling = asyncio.create_task(_tell(strikes, lives, order, say))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(strikes: Strikes, lives: Lives, order: Order, say: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(TELL_SECONDS)
        astray = [life for life in lives.all if life.problem]
        say(f"{len(strikes.done)} of {order.kills} kills, {len(lives.all)} faults, {len(astray)} gone astray")
        for life in astray[:5]:
            say(f"  {life.node} {life.plan} {life.repairs}: {life.problem}")
