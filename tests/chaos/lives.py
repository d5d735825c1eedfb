"""The lives of nodes: each breaks, is repaired as its plan says, is looked over, and breaks again.

People decide through the service, and say the same thing again until it has heard them. Every life ends in `succeeded`
after one reset of the machine, whoever is struck meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from temporalio.client import Client
from temporalio.service import RPCError

from daytwo.domain.vocabulary import Action, DecisionKind, Moment, State
from daytwo.lab.definition import CLUSTER
from tests.chaos.plane import ChaosPlane
from tests.chaos.watching import Open, Watch
from workers.temporal_server import NAMESPACE
from workflows.names import workflow_id

D, S = DecisionKind, State

FAULTS: Final = ("xid-79", "xid-79", "xid-119", "xid-154")
"""The last leaves jobs alone, so that a drain requeues them or waits for their end."""
WAIT_FOR_IDLE: Final = ("idle", "held-late")
"""Plans that wait for the end of a job, so that it must not be one of days."""
LEADS_TO: Final = {S.HELD: "held", S.NEEDS_HELP: "help"}
LIFE_SECONDS: Final = 240.0
"""No repair takes longer, struck or not; what has not ended by then is lost."""
LOOK_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 30.0
"""After which the owner of a job that is waited for cancels it: it may have come before the node was contained."""
ASK_SECONDS: Final = 15.0
"""After which a person who sees no effect says it again, as a new decision."""


class Astray(Exception):
    """A repair has not gone the way that its plan says."""


@dataclass
class Life:
    """One fault of one node, up to the node's return."""

    node: str
    plan: str
    began: float
    repairs: list[str] = field(default_factory=list)
    moment: Moment | None = None
    """For when it was approved. Where more is at stake than that, it is asked again, and approved again."""
    ended: float | None = None
    problem: str = ""
    doubled: int = 0
    marks: int = 0


class Person:
    """Somebody with `daytwo repairs …`, who does not give up."""

    def __init__(self, plane: ChaosPlane) -> None:
        transport = httpx.AsyncHTTPTransport(uds=str(plane.settings.service_socket), verify=False)
        self._service = httpx.AsyncClient(transport=transport, base_url="http://service", timeout=5)

    async def leave(self) -> None:
        """Close the connection."""
        await self._service.aclose()

    async def say(self, seen: Open, kind: DecisionKind, **more: Any) -> None:
        """Say it until the service has written it down; that it is about what has changed is no error."""
        body = {
            "request_id": str(uuid.uuid4()),
            "repair_id": seen.repair,
            "revision": seen.revision,
            "kind": kind,
            "reason": "chaos",
            **more,
        }
        while True:
            with contextlib.suppress(httpx.HTTPError):
                answer = await self._service.post("/v1/decisions", json=body)
                if answer.status_code < 500:
                    return
            await asyncio.sleep(0.3)


class Lives:
    """All lives of a run."""

    def __init__(
        self, plane: ChaosPlane, watch: Watch, rng: random.Random, *, wanted: Callable[[], Collection[str]]
    ) -> None:
        self._plane = plane
        self._watch = watch
        self._rng = rng
        self._wanted = wanted
        self._person = Person(plane)
        self._temporal: Client | None = None
        self.all: list[Life] = []
        self.stopping = False
        self._plans: dict[str, Callable[[Life], Awaitable[None]]] = {
            "straight": self._approved,
            "idle": self._approved_for_idle,
            "held": self._held,
            "held-late": self._held_late,
            "help": self._helped,
            "dismissed": self._dismissed,
        }

    async def run(self) -> None:
        """Live until `stopping` is set, and to the end of what has begun."""
        self._temporal = await Client.connect(self._plane.temporal.address, namespace=NAMESPACE)
        try:
            await asyncio.gather(*(self._live(node) for node in self._plane.nodes))
        finally:
            await self._person.leave()

    async def _live(self, node: str) -> None:
        await asyncio.sleep(self._rng.uniform(0, 8))
        while not self.stopping:
            life = Life(node, self._plan(), time.time())
            self.all.append(life)
            await self._one(life)
            if life.problem:
                return  # it stays as it is, to be looked at
            await asyncio.sleep(self._rng.uniform(0.2, 1.5))

    def _plan(self) -> str:
        """Any plan, but oftener one that leads to where somebody is to be struck and few repairs ever come."""
        wanted = [plan for state, plan in LEADS_TO.items() if state in self._wanted()]
        return self._rng.choice([*self._plans, *wanted * 3])

    async def _one(self, life: Life) -> None:
        before = self._plane.resets_before_emulator(life.node)
        try:
            async with asyncio.timeout(LIFE_SECONDS):
                faults = FAULTS[:-1] if life.plan in WAIT_FOR_IDLE else FAULTS
                await asyncio.to_thread(self._plane.lab.break_node, life.node, self._rng.choice(faults))
                await self._plans[life.plan](life)
        except TimeoutError:
            life.problem = f"not ended after {LIFE_SECONDS:.0f} s: {self._watch.open.get(life.node)}"
        except Astray as error:
            life.problem = str(error)
        life.ended = time.time()
        await asyncio.to_thread(self._look_over, life, before)

    def _look_over(self, life: Life, before: int) -> None:
        resets = self._plane.resets_before_emulator(life.node) - before
        life.doubled = max(0, resets - 1)
        if resets != 1:
            life.problem = life.problem or f"{resets} resets at the BMC"
        row = self._plane.ask_world("GET", f"/nodes/{life.node}")["nodes"][0]
        open_still = life.node in self._watch.open
        life.marks = 0 if open_still else len(row["reservations"]) + ("DRAIN" in row["states"])
        if life.marks and not life.problem:
            life.problem = f"marks left: {row['states']}, {row['reservations']}"

    # ---- plans

    async def _approved(self, life: Life, moment: Moment = Moment.NOW) -> None:
        await self._approve(life, await self._proposed(life), moment)
        await self._end(life, S.SUCCEEDED)

    async def _approved_for_idle(self, life: Life) -> None:
        await self._approved(life, Moment.WHEN_IDLE)

    async def _held(self, life: Life) -> None:
        seen = await self._proposed(life)
        await self._until(life, S.HELD, saying=D.HOLD, to=seen, within=(S.PROPOSED,))
        await self._release(life)
        await self._approve(life, seen, Moment.NOW)
        await self._end(life, S.SUCCEEDED)

    async def _held_late(self, life: Life) -> None:
        """The hold comes while the repair is on its way; too late, it has no effect."""
        await self._approve(life, await self._proposed(life), Moment.WHEN_IDLE)
        seen = self._watch.open.get(life.node)
        if seen is not None:
            await self._person.say(seen, D.HOLD)
        await self._in_state(life, S.HELD, S.ACTING, S.VERIFYING, S.REJOINING)
        if self._state(life) == S.HELD:
            await self._release(life)
        await self._end(life, S.SUCCEEDED)

    async def _helped(self, life: Life) -> None:
        """Somebody cancels it in Temporal while it is tested, and asks for the tests again."""
        await self._approve(life, await self._proposed(life), Moment.NOW)
        await self._in_state(life, S.VERIFYING, S.REJOINING)
        await self._cancel(life)
        if await self._in_state(life, S.NEEDS_HELP, ended=True) == S.NEEDS_HELP:
            await self._think(1, 4)
            await self._until(life, S.VERIFYING, S.REJOINING, saying=D.RETURN_AFTER_TESTS, within=(S.NEEDS_HELP,))
        await self._end(life, S.SUCCEEDED)

    async def _dismissed(self, life: Life) -> None:
        """Dismissed with a snooze of a second; the fault fires on, so that it is proposed again."""
        seen = await self._proposed(life)
        while await self._in_state(life, S.PROPOSED, ended=True) == S.PROPOSED:
            await self._person.say(self._watch.open.get(life.node, seen), D.DISMISS, snooze_seconds=1)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ASK_SECONDS):
                    await self._end(life, S.DISMISSED)
        await self._end(life, S.DISMISSED)
        await self._approved(life)

    # ---- steps

    async def _proposed(self, life: Life) -> Open:
        """A repair of this node that is new, once somebody may have read of it."""
        while True:
            seen = self._watch.open.get(life.node)
            if seen is not None and seen.repair not in life.repairs and seen.state == S.PROPOSED and seen.revision:
                life.repairs.append(seen.repair)
                life.moment = None
                await self._think(0.3, 2.5)
                return self._watch.open.get(life.node, seen)
            await asyncio.sleep(LOOK_SECONDS)

    async def _approve(self, life: Life, seen: Open, moment: Moment) -> None:
        life.moment = moment
        past = tuple(state for state in S if state not in (S.PROPOSED, S.NEEDS_HELP, S.DISMISSED))
        how = {"action": Action.POWER_CYCLE, "moment": moment}
        await self._until(life, *past, saying=D.APPROVE, to=seen, within=(S.PROPOSED,), **how)

    async def _release(self, life: Life) -> None:
        await self._think(1, 4)
        past = tuple(state for state in S if state is not S.HELD)
        await self._until(life, *past, saying=D.RELEASE, within=(S.HELD,))

    async def _until(
        self,
        life: Life,
        *states: State,
        saying: DecisionKind,
        within: tuple[State, ...],
        to: Open | None = None,
        **more: Any,
    ) -> None:
        """Say it, and say it again of what stands then, until the repair is in one of these states."""
        while self._state(life) not in states:
            seen = self._watch.open.get(life.node, to)
            if seen is not None and seen.state in within:
                await self._person.say(seen, saying, **more)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ASK_SECONDS):
                    await self._in_state(life, *states, ended=True, passing=within)

    async def _in_state(self, life: Life, *states: State, ended: bool = False, passing: tuple[State, ...] = ()) -> str:
        """Wait until the repair is in one of these states, or has ended where that is allowed; for jobs not for ever.

        Raises `Astray` where it ends otherwise, or needs help and that is not `passing`.
        """
        began = time.time()
        while (state := self._state(life)) not in states:
            if state in (S.WAITING, S.DRAINING) and time.time() - began > PATIENCE_SECONDS:
                await asyncio.to_thread(self._plane.ask_world, "POST", f"/cancel/{life.node}")
                began = time.time()
            if state is None and (over := await asyncio.to_thread(self._watch.ended, life.repairs[-1])):
                if ended or over in states:
                    return over
                raise Astray(f"{life.repairs[-1]} has ended: {over}; expected was {', '.join(states)}")
            if state == S.NEEDS_HELP and S.NEEDS_HELP not in (*states, *passing):
                raise Astray(f"{life.repairs[-1]} needs help; expected was {', '.join(states)}")
            if state == S.PROPOSED and life.moment and S.PROPOSED not in (*states, *passing):
                await self._approve(life, self._watch.open[life.node], life.moment)
            await asyncio.sleep(LOOK_SECONDS)
        return str(state)

    async def _end(self, life: Life, state: State) -> None:
        found = await self._in_state(life, state)
        if found != state:
            raise Astray(f"{life.repairs[-1]} has ended: {found}; expected was {state}")

    def _state(self, life: Life) -> str | None:
        seen = self._watch.open.get(life.node)
        return seen.state if seen is not None and seen.repair == life.repairs[-1] else None

    async def _cancel(self, life: Life) -> None:
        assert self._temporal is not None
        handle = self._temporal.get_workflow_handle(workflow_id(CLUSTER, life.node))
        while self._state(life) is not None:
            with contextlib.suppress(RPCError):  # it is away, or has just ended
                await handle.cancel()
                return
            await asyncio.sleep(0.3)

    async def _think(self, least: float, most: float) -> None:
        await asyncio.sleep(self._rng.uniform(least, most))
