"""The level-triggered heart: looks at every node that is due, judges it, and makes the repairs be what they should be.

Nothing is remembered here but times. Whatever is lost between two writes is found by the next look: due nodes at once,
firing nodes and open repairs each minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.exc import IntegrityError
from sqlmodel import col, update

from daytwo import repairs
from daytwo.adapters import Adapters, Cluster
from daytwo.controller.batches import Batches
from daytwo.controller.delivering import Delivering
from daytwo.controller.due import NodeKey, batches, changed, left_opening, worth_a_look
from daytwo.controller.gone_marks import WATCHED, GoneMarks
from daytwo.controller.informing import Informing
from daytwo.controller.leases import LeaseLost
from daytwo.controller.looking import Looked, Looking
from daytwo.controller.lost_workflows import LostWorkflows
from daytwo.controller.marks import Marks, mark_on
from daytwo.controller.means import Means
from daytwo.controller.settling import Settling
from daytwo.controller.shown import Shown
from daytwo.controller.storms import Storms
from daytwo.domain.errors import DaytwoError, NotFound
from daytwo.domain.exchange import Run
from daytwo.domain.ids import new_id
from daytwo.domain.repair_states import HELD_FROM
from daytwo.domain.seams import Notifier
from daytwo.domain.situation import OpenRepair, Situation
from daytwo.domain.verdicts import Propose, Withhold
from daytwo.domain.vocabulary import Mark, State
from daytwo.holds import hold_repair
from daytwo.intake import CLUSTER_WIDE
from daytwo.intents import Guard, Ledger
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow, RepairRow
from daytwo.temporal import Repairs, TemporalDelivery

log = logging.getLogger(__name__)

SWEEP: Final = timedelta(seconds=60)
"""A firing node and an open repair are looked at this often although nothing has happened (operations.md, rule 7)."""
REOPEN_AFTER: Final = timedelta(seconds=5)
"""A row still `opening` after this was left by a crash before its workflow started."""
TAKE_OVER_AFTER: Final = timedelta(seconds=1)
CONTAINED_IN: Final = frozenset({repairs.OPENING, State.PROPOSED, State.APPROVED, State.HELD, State.NEEDS_HELP})
"""States of a repair in which it writes no marks by itself and lifts none."""
CRASHED_AGAIN: Final = timedelta(seconds=30)
"""A node whose look fails for a reason nobody foresaw must not keep the loop from the others."""
CLOCK_STEPS: Final = timedelta(seconds=5)
"""A clock that is put back by less delays nothing that matters."""
AT_ONCE: Final = 8
"""Nodes followed up together: perhaps a call to Temporal each, or an act that keeps new work off."""


class Reconciler:
    """Looks and acts; `guard` refuses every write once another controller holds the lease."""

    def __init__(
        self,
        store: Store,
        adapters: Adapters,
        ledger: Ledger,
        temporal: Repairs,
        *,
        notifier: Notifier,
        guard: Guard,
        now: Callable[[], datetime],
        sweep: timedelta = SWEEP,
    ) -> None:
        means = Means(store, adapters, notifier, guard, now)
        self._store = store
        self._adapters = adapters
        self._temporal = temporal
        self._looking = Looking(store, now)
        self._marks = Marks(store, ledger, guard)
        self._gone_marks = GoneMarks(store, self._marks, notifier, guard=guard, now=now)
        self._storms = Storms(means, ledger)
        self._batches = Batches(store)
        self._opening = asyncio.Lock()
        self._delivering = Delivering(store, TemporalDelivery(store, temporal), longest=sweep)
        self._lost = LostWorkflows(store, temporal, guard)
        self._settling = Settling(means, temporal)
        self._informing = Informing(store, temporal, guard)
        self._shown = Shown(store, guard, now)
        self._guard = guard
        self._now = now
        self._sweep = sweep
        self._again: dict[NodeKey, datetime] = {}
        self._swept: datetime | None = None
        self._stepped = now()
        self._hands = asyncio.Semaphore(AT_ONCE)

    async def step(self) -> int:
        """Look at what is due now; returns how many nodes were looked at."""
        if not await self._settling.is_done():
            return 0
        now = self._now()
        self._heed_clock(now)
        sweep = self._swept is None or now >= self._swept + self._sweep
        nodes = await asyncio.to_thread(self._due, now, sweep)
        for cluster, names in batches(nodes):
            await self._look_safely(cluster, names)
            await self._storms.step(self._now())
        await self._storms.step(self._now())
        untaken = await self._delivering.step(now)
        await self._lost.step(now, sweep=sweep, untaken=untaken)
        if sweep:
            self._swept = now
            await self._storms.resolve()
        return len(nodes)

    def _heed_clock(self, now: datetime) -> None:
        """What was to be done at a time is done now where the clock was put back: else all would wait for that long."""
        if now < self._stepped - CLOCK_STEPS:
            log.warning("the clock was put back from %s to %s: everything is looked at", self._stepped, now)
            self._swept, self._again = None, dict.fromkeys(self._again, now)
            self._storms.forget_times()
            self._delivering.forget_times()
        self._stepped = now

    def _due(self, now: datetime, sweep: bool) -> list[NodeKey]:
        with self._store.read() as session:
            found = changed(session)
            if sweep:
                found += worth_a_look(session)
            found += [node for node in left_opening(session, now - REOPEN_AFTER) if node not in self._again]
        found += [node for node, at in self._again.items() if at <= now]
        return [key for key in dict.fromkeys(found) if key[1] != CLUSTER_WIDE]

    async def _look_safely(self, cluster: str, names: Sequence[str]) -> None:
        try:
            await self._look_at(cluster, names)
        except LeaseLost:
            raise
        except Exception as error:
            self._failed(cluster, names, error)

    def _failed(self, cluster: str, names: Sequence[str], error: Exception) -> None:
        """These nodes are looked at again; one that nobody foresaw is told with where it came from."""
        foreseen = isinstance(error, DaytwoError)
        log.log(logging.WARNING, "%s/%s: %s", cluster, ", ".join(names[:3]), error, exc_info=not foreseen)
        again = self._now() + (REOPEN_AFTER if foreseen else CRASHED_AGAIN)
        self._again.update({(cluster, name): again for name in names})

    async def _look_at(self, cluster_name: str, names: Sequence[str]) -> None:
        """Judge nodes and make their repairs, their marks and their shown state follow."""
        for name in names:
            self._again.pop((cluster_name, name), None)
        try:
            cluster = await asyncio.to_thread(self._adapters.cluster, cluster_name)
        except NotFound as error:
            log.info("%s: its nodes are not looked at any more", error)
            return
        looks, failed = await asyncio.to_thread(self._looking.look, cluster, names)
        self._again.update({(cluster_name, name): self._now() + CRASHED_AGAIN for name in failed})
        await self._storms.see(cluster, looks)
        done = await asyncio.gather(*(self._follow_safely(cluster, each) for each in looks))
        await asyncio.to_thread(self._shown.write, [each for each, well in zip(looks, done, strict=True) if well])

    async def _follow_safely(self, cluster: Cluster, looked: Looked) -> bool:
        async with self._hands:
            try:
                await self._follow(cluster, looked)
            except LeaseLost:
                raise
            except Exception as error:
                self._failed(looked.row.cluster, [looked.row.name], error)
                return False
            return True

    async def _follow(self, cluster: Cluster, looked: Looked) -> None:
        situation, verdict = looked.situation, looked.verdict
        if verdict.look_again_at is not None:
            self._again[situation.cluster, situation.node] = verdict.look_again_at
        bare = True
        if looked.orphan is not None:
            lifting = self._marks.lift(cluster, situation.node, looked.orphan)
            bare = await self._tried(situation, f"the marks of {looked.orphan} are not lifted", lifting)
        if situation.open_repair is not None:
            await self._follow_open(cluster, looked, situation.open_repair, bare=bare)
        elif isinstance(verdict, Propose):
            await self._open(cluster, looked, verdict)
        elif isinstance(verdict, Withhold) and verdict.cause == "common-cause" and verdict.contain:
            await self._tried(situation, "not contained", self._storms.contain(cluster, looked))

    async def _follow_open(self, cluster: Cluster, looked: Looked, opened: OpenRepair, *, bare: bool) -> None:
        """`bare`: no other mark of ours stands on the node, which would be taken for somebody else's."""
        situation, verdict = looked.situation, looked.verdict
        if opened.state == repairs.OPENING:
            self._again[situation.cluster, situation.node] = self._now() + REOPEN_AFTER
            await self._start(situation, opened.repair_id, verdict.why)
        if looked.contain and bare and not opened.contained and opened.state in CONTAINED_IN:
            await self._contain(cluster, situation, opened.repair_id, verdict.why)
        if opened.state in WATCHED:
            await self._tried(situation, "its marks cannot be told", self._gone_marks.see(cluster, situation, opened))
        if situation.held and opened.state in HELD_FROM:
            await asyncio.to_thread(self._hold, looked.row, opened.repair_id)
        if looked.digest != looked.told:
            await self._inform(situation, looked.digest)

    async def _open(self, cluster: Cluster, looked: Looked, verdict: Propose) -> None:
        situation = looked.situation
        async with self._opening:  # two that count at once would both find room
            wait = await asyncio.to_thread(self._batches.wait_for_turn, cluster, situation, verdict)
            repair_id = None if wait else await asyncio.to_thread(self._open_row, cluster, situation, verdict)
        if wait:
            self._again[situation.cluster, situation.node] = self._now() + wait
            if verdict.contain:
                await self._tried(situation, "not contained", self._storms.contain(cluster, looked))
        if repair_id is None:
            return
        starting = asyncio.create_task(self._start(situation, repair_id, verdict.advice.title))
        if verdict.contain and mark_on(looked.row) is not None:
            # An incident's mark gives way to the repair's at the next look.
            self._again[situation.cluster, situation.node] = self._now() + TAKE_OVER_AFTER
        elif verdict.contain:
            await self._contain(cluster, situation, repair_id, verdict.advice.title)
        await starting

    def _open_row(self, cluster: Cluster, situation: Situation, verdict: Propose) -> str | None:
        now = self._now()
        repair_id = new_id("r", now)
        try:
            with self._store.write() as session:
                self._guard(session)
                repairs.open_row(
                    session,
                    repair_id,
                    session.get_one(NodeRow, (situation.cluster, situation.node)),
                    why=verdict.why,
                    opened_by="policy",
                    policy_revision=cluster.policy_revision,
                    now=now,
                )
        except IntegrityError:
            return None  # somebody opened one a moment ago: the next look sees it
        return repair_id

    def _hold(self, node: NodeRow, repair_id: str) -> None:
        """The open repair of a held node is held as well, unless that was decided already."""
        with self._store.write() as session:
            self._guard(session)
            repair = session.get_one(RepairRow, repair_id, with_for_update=True)
            hold_repair(session, node, repair, self._now())

    async def _start(self, situation: Situation, repair_id: str, why: str) -> None:
        run = Run(repair_id=repair_id, cluster=situation.cluster, node=situation.node)
        if not await self._temporal.start(run, f"{situation.node}: {why}"):
            # The workflow of an earlier repair has not quite ended; the row stays `opening`.
            self._again[situation.cluster, situation.node] = self._now() + timedelta(seconds=1)

    async def _contain(self, cluster: Cluster, situation: Situation, repair_id: str, why: str) -> None:
        """Keep new work off the node; nothing that runs is touched."""
        mark = Mark(repair_id=repair_id, text="contained, " + why)
        if await self._tried(
            situation, "not contained", self._marks.contain(cluster, situation.node, mark, while_in=CONTAINED_IN)
        ):
            await asyncio.to_thread(self._set_contained, repair_id)

    async def _tried(self, situation: Situation, otherwise: str, doing: Awaitable[None]) -> bool:
        """True when it was done; what is not possible yet is tried again with the next look."""
        try:
            await doing
        except LeaseLost:
            raise
        except DaytwoError as error:
            log.warning("%s: %s: %s", situation.node, otherwise, error)
            self._again[situation.cluster, situation.node] = self._now() + REOPEN_AFTER
            return False
        return True

    def _set_contained(self, repair_id: str) -> None:
        with self._store.write() as session:
            self._guard(session)
            session.exec(update(RepairRow).where(col(RepairRow.id) == repair_id).values(contained=True))

    async def _inform(self, situation: Situation, digest: str) -> None:
        now = self._now()
        if wait := await self._informing.tell(situation, digest, now):
            self._again[situation.cluster, situation.node] = now + wait
