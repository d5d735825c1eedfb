"""The level-triggered heart: looks at every node that is due, judges it, and makes the repairs be what they should be.

Nothing is remembered here but times. Whatever is lost between two writes is found by the next look: due nodes at once,
firing nodes and open repairs each minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select, update

from daytwo import repairs
from daytwo.adapters import Adapters, Cluster, scheduler_driver
from daytwo.controller.delivering import Delivering
from daytwo.controller.leases import LeaseLost
from daytwo.controller.lost_workflows import LostWorkflows
from daytwo.domain.errors import DaytwoError, NotFound, NotYet
from daytwo.domain.exchange import Run
from daytwo.domain.ids import new_id
from daytwo.domain.node_states import NodeLook, node_state
from daytwo.domain.seams import Act, NodeFacts
from daytwo.domain.situation import Situation
from daytwo.domain.triage import Propose, Verdict, Withhold, asking, triage
from daytwo.domain.vocabulary import FindingStatus, Mark, NodeState
from daytwo.faults.catalogue import catalogue
from daytwo.intents import Guard, Ledger
from daytwo.store.engine import Store
from daytwo.store.situations import load_situation
from daytwo.store.tables import FindingRow, NodeRow, NodeTransitionRow, RepairRow
from daytwo.temporal import Repairs, TemporalDelivery

log = logging.getLogger(__name__)

SWEEP: Final = timedelta(seconds=60)
"""A firing node and an open repair are looked at this often although nothing has happened (operations.md, rule 7)."""
YOUNG: Final = timedelta(seconds=15)
"""A repair this young hears of every changed outcome at once; later at most every `INFORM_EVERY` (design 4)."""
INFORM_EVERY: Final = timedelta(seconds=30)
REOPEN_AFTER: Final = timedelta(seconds=5)
"""A row still `opening` after this was left by a crash before its workflow started."""
CRASHED_AGAIN: Final = timedelta(seconds=30)
"""A node whose look fails for a reason nobody foresaw must not keep the loop from the others."""
CONTAIN_TRIES: Final = 5
"""Looks at a containment within one look at the node; after that the node is looked at again."""
AT_ONCE: Final = 8
"""Nodes looked at together. Each look is a few reads and perhaps one call to Temporal."""

NodeKey = tuple[str, str]


class Looked(NamedTuple):
    """One look at a node."""

    due: int
    situation: Situation
    verdict: Verdict
    state: tuple[NodeState, str]


class Reconciler:
    """Looks and acts; `guard` refuses every write once another controller holds the lease."""

    def __init__(
        self,
        store: Store,
        adapters: Adapters,
        ledger: Ledger,
        temporal: Repairs,
        *,
        guard: Guard,
        now: Callable[[], datetime],
        sweep: timedelta = SWEEP,
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._ledger = ledger
        self._temporal = temporal
        self._delivering = Delivering(store, TemporalDelivery(store, temporal), longest=sweep)
        self._lost = LostWorkflows(store, temporal, guard)
        self._guard = guard
        self._now = now
        self._sweep = sweep
        self._again: dict[NodeKey, datetime] = {}
        self._swept: datetime | None = None

    async def step(self) -> int:
        """Look at what is due now; returns how many nodes were looked at."""
        now = self._now()
        sweep = self._swept is None or now >= self._swept + self._sweep
        nodes = await asyncio.to_thread(self._due, now, sweep)
        for start in range(0, len(nodes), AT_ONCE):
            await asyncio.gather(*(self._look_safely(node) for node in nodes[start : start + AT_ONCE]))
        await self._delivering.step(now)
        if sweep:
            self._swept = now
            await self._lost.step(now)
        return len(nodes)

    def _due(self, now: datetime, sweep: bool) -> list[NodeKey]:
        with self._store.read() as session:
            keys = session.exec(select(NodeRow.cluster, NodeRow.name).where(NodeRow.due > NodeRow.judged)).all()
            found = [(cluster, name) for cluster, name in keys]
            if sweep:
                found += _firing_or_open(session)
            found += [node for node in _left_opening(session, now - REOPEN_AFTER) if node not in self._again]
        found += [node for node, at in self._again.items() if at <= now]
        return list(dict.fromkeys(found))

    async def _look_safely(self, key: NodeKey) -> None:
        try:
            await self.look_at(*key)
        except LeaseLost:
            raise
        except DaytwoError as error:
            log.warning("%s/%s: %s", *key, error)
            self._again[key] = self._now() + REOPEN_AFTER
        except Exception:
            log.exception("%s/%s: the look failed", *key)
            self._again[key] = self._now() + CRASHED_AGAIN

    async def look_at(self, cluster_name: str, node: str) -> None:
        """Judge one node and make its repair, its marks and its shown state follow."""
        self._again.pop((cluster_name, node), None)
        cluster = await asyncio.to_thread(self._adapters.cluster, cluster_name)
        looked = await asyncio.to_thread(self._look, cluster, cluster_name, node)
        await self._follow(cluster, looked)
        await asyncio.to_thread(self._write_look, cluster_name, node, looked)

    def _look(self, cluster: Cluster, cluster_name: str, name: str) -> Looked:
        now = self._now()
        with self._store.read() as session:
            node = session.get(NodeRow, (cluster_name, name))
            if node is None:
                raise NotFound(f"node: found {cluster_name}/{name}, which is not declared")
            facts = NodeFacts.model_validate(node.facts) if node.facts else None
            situation = load_situation(
                session,
                node,
                cluster.definition,
                policy_revision=cluster.policy_revision,
                facts=facts,
                workloads=None,
                able=cluster.able(),
                now=now,
            )
            state = node_state(_node_look(node, situation, cluster, now))
        return Looked(node.due, situation, triage(situation, cluster.definition.policy, catalogue(), now), state)

    async def _follow(self, cluster: Cluster, looked: Looked) -> None:
        situation, verdict = looked.situation, looked.verdict
        if verdict.look_again_at is not None:
            self._again[situation.cluster, situation.node] = verdict.look_again_at
        if situation.open_repair is None and isinstance(verdict, Propose):
            await self._open(cluster, situation, verdict)
            return
        if situation.open_repair is None:
            return
        if situation.open_repair.state == repairs.OPENING:
            self._again[situation.cluster, situation.node] = self._now() + REOPEN_AFTER
            await self._start(situation, situation.open_repair.repair_id, verdict.why)
        if isinstance(verdict, Propose | Withhold) and verdict.contain and not situation.open_repair.contained:
            await self._contain(cluster, situation, situation.open_repair.repair_id, verdict.why)
        await self._inform(looked)

    async def _open(self, cluster: Cluster, situation: Situation, verdict: Propose) -> None:
        repair_id = await asyncio.to_thread(self._open_row, cluster, situation, verdict)
        if repair_id is None:
            return
        starting = asyncio.create_task(self._start(situation, repair_id, verdict.advice.title))
        if verdict.contain:
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

    async def _start(self, situation: Situation, repair_id: str, why: str) -> None:
        run = Run(repair_id=repair_id, cluster=situation.cluster, node=situation.node)
        if not await self._temporal.start(run, f"{situation.node}: {why}"):
            # The workflow of an earlier repair has not quite ended; the row stays `opening`.
            self._again[situation.cluster, situation.node] = self._now() + timedelta(seconds=1)

    async def _contain(self, cluster: Cluster, situation: Situation, repair_id: str, why: str) -> None:
        """Keep new work off the node; nothing that runs is touched. What is not possible yet is tried again."""
        mark = Mark(repair_id=repair_id, text="contained, " + why)
        acts = cluster.scheduler.quarantine_acts(situation.cluster, situation.node, mark)
        try:
            for act in acts:
                key = f"{repair_id}/contain/{act.kind}"
                await self._carry_out(key, scheduler_driver(situation.cluster), act)
        except DaytwoError as error:
            log.warning("%s: not contained: %s", situation.node, error)
            self._again[situation.cluster, situation.node] = self._now() + timedelta(seconds=5)
            return
        await asyncio.to_thread(self._set_contained, repair_id)

    async def _carry_out(self, key: str, driver: str, act: Act) -> None:
        for _ in range(CONTAIN_TRIES):
            try:
                await self._ledger.carry_out(key, driver, act, guard=self._guard)
                return
            except NotYet as error:
                await asyncio.sleep(min(error.delay_seconds, 0.5))
        raise NotYet(f"{act.node}: {act.kind} is not proven yet")

    def _set_contained(self, repair_id: str) -> None:
        with self._store.write() as session:
            self._guard(session)
            session.exec(update(RepairRow).where(col(RepairRow.id) == repair_id).values(contained=True))

    async def _inform(self, looked: Looked) -> None:
        """Tell the open repair of a changed outcome: at once while it is young, later at most every half minute."""
        situation = looked.situation
        digest, now = _digest(looked), self._now()
        wait = await asyncio.to_thread(self._note_outcome, situation, digest, now)
        if wait is None:
            return
        if wait > timedelta(0):
            self._again[situation.cluster, situation.node] = now + wait
            return
        try:
            await self._temporal.look_again(situation.cluster, situation.node)
        except NotFound:
            log.info("%s: its repair has no workflow at this moment", situation.node)

    def _note_outcome(self, situation: Situation, digest: str, now: datetime) -> timedelta | None:
        """`None`: nothing new. Else how long to wait before telling; zero when it is written down as told."""
        with self._store.write() as session:
            self._guard(session)
            row = session.exec(
                select(RepairRow).where(RepairRow.open_key == f"{situation.cluster}/{situation.node}")
            ).first()
            if row is None or row.outcome_digest == digest:
                return None
            young = now < row.opened_at + YOUNG
            if not young and row.informed_at and now < row.informed_at + INFORM_EVERY:
                return row.informed_at + INFORM_EVERY - now
            row.outcome_digest, row.informed_at = digest, now
            session.add(row)
            return timedelta(0)

    def _write_look(self, cluster: str, name: str, looked: Looked) -> None:
        """The node has been looked at up to the count that was read; its shown state follows."""
        state, why = looked.state
        with self._store.write() as session:
            self._guard(session)
            row = session.get_one(NodeRow, (cluster, name))
            row.judged = max(row.judged, looked.due)
            if row.state != state:
                session.add(_transition(row, state, why, self._now()))
                row.state, row.state_since = state, self._now()
            row.state_why = why
            session.add(row)


def _node_look(node: NodeRow, situation: Situation, cluster: Cluster, now: datetime) -> NodeLook:
    opened = situation.open_repair
    return NodeLook(
        repair_state=opened.state if opened else None,
        repair_id=opened.repair_id if opened else None,
        firing=asking(situation, cluster.definition.policy, catalogue()),
        facts=situation.facts,
        last_heard_at=node.last_heard_at,
        silent_after_seconds=cluster.definition.policy.timing.silent_after_seconds,
        now=now,
    )


def _firing_or_open(session: Session) -> list[NodeKey]:
    firing = select(FindingRow.cluster, FindingRow.node).where(FindingRow.status == FindingStatus.FIRING)
    opened = select(RepairRow.cluster, RepairRow.node).where(col(RepairRow.open_key).is_not(None))
    rows = [*session.exec(firing).all(), *session.exec(opened).all()]
    silent = session.exec(select(NodeRow.cluster, NodeRow.name).where(NodeRow.state != NodeState.HEALTHY)).all()
    return [(cluster, node) for cluster, node in [*rows, *silent]]


def _left_opening(session: Session, before: datetime) -> list[NodeKey]:
    left = (RepairRow.state == repairs.OPENING, col(RepairRow.open_key).is_not(None), RepairRow.opened_at < before)
    return [
        (cluster, node) for cluster, node in session.exec(select(RepairRow.cluster, RepairRow.node).where(*left)).all()
    ]


def _digest(looked: Looked) -> str:
    """What a repair must hear of: the advice, the marks, the boot. Not counts, which change all the time."""
    verdict, facts = looked.verdict, looked.situation.facts
    parts = [verdict.kind, str(looked.situation.boot_id)]
    if isinstance(verdict, Propose):
        parts += [verdict.advice.action, str(verdict.advice.rung), *verdict.advice.faults]
    if facts is not None:
        parts += [facts.ownership, str(facts.boot_time), facts.drained_by]
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


def _transition(row: NodeRow, state: NodeState, why: str, now: datetime) -> NodeTransitionRow:
    return NodeTransitionRow(cluster=row.cluster, node=row.name, from_state=row.state, to_state=state, why=why, at=now)
