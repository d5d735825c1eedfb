"""Who is struck, how, and when: the matrix of processes, modes and states, or a random walk."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from daytwo.domain.repair_states import TERMINAL
from daytwo.domain.vocabulary import State
from tests.chaos.plane import ChaosPlane
from tests.chaos.victims import Part
from tests.chaos.watching import Open, Watch

S = State

STATES: Final = tuple(state for state in S if state not in TERMINAL)
SHORT: Final = (S.QUARANTINING, S.APPROVED, S.REJOINING, S.WAITING, S.NEEDS_HELP, S.HELD, S.DRAINING)
"""Those that are seldom seen first: whenever a repair is in one of them, it is struck there."""
OURS: Final = frozenset({S.APPROVED, S.QUARANTINING, S.WAITING, S.DRAINING, S.ACTING, S.VERIFYING, S.REJOINING})
"""States in which the repair moves by itself."""
PROMPT: Final = frozenset({S.APPROVED, S.QUARANTINING, S.VERIFYING, S.REJOINING})
"""Of these the ones that wait for no job and no machine, so that how long they last is up to us."""
MODES: Final = ("kill", "stop")
AWAY_SECONDS: Final = {"kill": (0.0, 1.0), "stop": (1.5, 4.0)}
WAIT_SECONDS: Final = 5.0
"""For the repair that was struck to move on, before the next strike."""


class Cell(NamedTuple):
    """One field of the matrix."""

    process: str
    mode: str
    state: str


@dataclass
class Strike:
    """One kill or stop: what was meant, when, and the repairs that were open at that moment."""

    cell: Cell
    node: str
    repair: str
    at: float
    back: float = 0.0
    open: dict[str, Open] = field(default_factory=dict)


def matrix(processes: list[str], kills: int, rng: random.Random) -> list[Cell]:
    """So many cells: every process in every mode as often as every other, in each state in turn."""
    found: list[Cell] = []
    while len(found) < kills:
        pairs = [(process, mode) for process in processes for mode in MODES]
        states = {pair: rng.sample(STATES, len(STATES)) for pair in pairs}
        found += [Cell(*pair, states[pair][turn]) for turn in range(len(STATES)) for pair in pairs]
    return found[:kills]


class Strikes:
    """Carries out the strikes, one after the other, while lives are lived."""

    def __init__(self, plane: ChaosPlane, watch: Watch, rng: random.Random) -> None:
        self._plane = plane
        self._watch = watch
        self._rng = rng
        self.done: list[Strike] = []
        self.left: list[Cell] = []

    async def over_matrix(self, cells: list[Cell]) -> None:
        """Strike every cell once, in the order in which its state comes up."""
        self.left = list(cells)
        while self.left:
            cell, node = await self._next()
            self.left.remove(cell)
            await self._strike(cell, node)

    def wanted(self) -> set[str]:
        """The states in which somebody is still to be struck."""
        return {cell.state for cell in self.left}

    async def at_random(self, processes: list[str], kills: int) -> None:
        """Strike anybody at any moment."""
        while len(self.done) < kills:
            await asyncio.sleep(self._rng.uniform(0, 3))
            found = sorted((node, seen) for node, seen in self._watch.open.items() if seen.state in STATES)
            if not found:
                continue
            node, seen = self._rng.choice(found)
            await self._strike(Cell(self._rng.choice(processes), self._rng.choice(MODES), seen.state), node)

    async def _next(self) -> tuple[Cell, str]:
        """A cell of the most seldom state that repairs are in, and one of them: just come there, or long since."""
        while True:
            nodes: dict[str, list[str]] = {}
            for node, seen in self._watch.open.items():
                nodes.setdefault(seen.state, []).append(node)
            for state in in_order(nodes):
                cells = [cell for cell in self.left if cell.state == state]
                if cells:
                    return cells[0], self._rng.choice(nodes[state])
            await asyncio.sleep(0.003)

    async def _strike(self, cell: Cell, node: str) -> None:
        seen = self._watch.open.get(node)
        strike = Strike(cell, node, seen.repair if seen else "", time.time(), open=dict(self._watch.open))
        victim = self._plane.victims[cell.process]
        away = self._rng.uniform(*AWAY_SECONDS[cell.mode])
        await (victim.kill(away) if cell.mode == "kill" else victim.stop(away))
        strike.back = time.time()
        self.done.append(strike)
        await self._keep_all()
        await self._moved_on(strike)

    async def _keep_all(self) -> None:
        for victim in self._plane.victims.values():
            if isinstance(victim, Part):
                await victim.keep()

    async def _moved_on(self, strike: Strike) -> None:
        limit = time.time() + WAIT_SECONDS
        before = strike.open.get(strike.node)
        while strike.cell.state in OURS and self._watch.open.get(strike.node) == before and time.time() < limit:
            await self._keep_all()
            await asyncio.sleep(0.05)


def in_order(states: Collection[str]) -> Iterator[str]:
    """The states that are seldom seen first, then the others."""
    yield from (state for state in SHORT if state in states)
    yield from (state for state in states if state not in SHORT)
