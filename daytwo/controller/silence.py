"""Finds agents that have fallen silent, measured in time the gateway was up. Silence alone never interrupts work.

The gateway is known to be up while pulses of any node arrive. So a node is silent if others were heard and it was not;
if many fall silent together, or nobody is heard at all, it is one finding on the gateway, not many on nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func
from sqlmodel import Session, col, select

from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock, every
from daytwo.domain.load_definition import expand_nodes
from daytwo.domain.others_hands import is_switched_off
from daytwo.domain.policy import Policy
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import FindingStatus
from daytwo.intake import CLUSTER_WIDE, NODE, Observation, observe
from daytwo.outages import Outages
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, FindingRow, NodeRow

SILENT: Final = "agent-silent"
GATEWAY: Final = "gateway"
TOGETHER_SHARE: Final = 0.02
TOGETHER_NODES: Final = 3
"""More than this share and at least so many at once: one cause on the way (operations.md, rule 9)."""
STEP_SECONDS: Final = 10.0
NOBODY_HEARD: Final = timedelta(minutes=3)
"""Three pulses: then it is the gateway, or the way to it."""


@dataclass(frozen=True, slots=True)
class Uptime:
    """Since when pulses have been arriving without a gap; `None` while they are not. `at` is when that was seen."""

    since: datetime | None
    at: datetime

    def advance(self, newest: datetime | None, now: datetime, gap: timedelta) -> Uptime:
        """Look again. A gap between two looks of ours hides what happened in it, so it counts as one."""
        if newest is None or now - newest > gap:
            return Uptime(None, now)
        unbroken = self.since is not None and now - self.at <= gap
        return Uptime(self.since if unbroken else newest, now)


@dataclass(frozen=True, slots=True)
class Silence:
    """Who is silent: single nodes, or so many that it is the gateway or the way to it."""

    nodes: frozenset[str]
    gateway: bool


def silent_nodes(
    heard: Mapping[str, datetime], known: frozenset[str], *, uptime: Uptime, quiet_for: timedelta, after: timedelta
) -> Silence:
    """Say who is silent. `heard` has every node that was ever heard; `known` are those already found silent.

    `quiet_for` is how long nobody at all was heard while this was watched. Nodes already known do not make a crowd.
    """
    since = uptime.since
    if since is None:
        return Silence(known, gateway=bool(heard) and quiet_for > after)
    silent = {name for name, at in heard.items() if uptime.at - max(at, since) > after}
    fresh = silent - known
    if len(fresh) >= TOGETHER_NODES and len(fresh) > TOGETHER_SHARE * len(heard):
        return Silence(known & silent, gateway=True)
    return Silence(frozenset(silent), gateway=False)


async def watch_silence(
    store: Store, lease: Lease, *, step_seconds: float = STEP_SECONDS, clock: Clock | None = None
) -> None:
    """Look every few seconds, for ever. Raises `LeaseLost`."""
    clock = clock or Clock()
    watch = SilenceWatch(store, lease, clock=clock)
    await every(step_seconds, watch.step, clock=clock, lease=lease)


class SilenceWatch:
    """What the loop remembers between two looks."""

    def __init__(self, store: Store, lease: Lease, *, clock: Clock) -> None:
        self._store = store
        self._guard = lease.guard
        self._outages = Outages(store, "controller", guard=lease.guard, now=clock.now)
        self._clock = clock
        self._began = clock.now()
        self._uptime: dict[str, Uptime] = {}

    async def step(self) -> None:
        """Look once, at every cluster. Raises `LeaseLost`."""
        now = self._clock.now()
        newest, seen = await asyncio.to_thread(self._look, now)
        if seen:
            await asyncio.to_thread(observe, self._store, seen, now=now, guard=self._guard)
        if newest is not None and now - newest > NOBODY_HEARD:
            await self._outages.bad(GATEWAY, "no agent is heard through it", since=newest)
        elif newest is not None:
            await self._outages.good(GATEWAY)

    def _look(self, now: datetime) -> tuple[datetime | None, list[Observation]]:
        with self._store.read() as session:
            newest = session.exec(select(func.max(NodeRow.last_heard_at))).one()
            clusters = session.exec(select(ClusterRow)).all()
            return newest, [seen for cluster in clusters for seen in self._judge(session, cluster, newest, now)]

    def _judge(
        self, session: Session, cluster: ClusterRow, newest: datetime | None, now: datetime
    ) -> list[Observation]:
        after = timedelta(seconds=_limit(cluster))
        before = self._uptime.get(cluster.name, Uptime(None, now))
        uptime = self._uptime[cluster.name] = before.advance(newest, now, after / 2)
        found = _found(session, cluster.name)
        heard, off = _without_switched_off(session, cluster.name, _heard(session, cluster), before=now - after)
        verdict = silent_nodes(
            heard,
            frozenset(found - {CLUSTER_WIDE} - off),
            uptime=uptime,
            quiet_for=now - max(self._began, newest or self._began),
            after=after,
        )
        return _changes(cluster.name, found, verdict, now, excused=off)


def _limit(cluster: ClusterRow) -> float:
    return Policy.model_validate(cluster.definition.get("policy", {})).timing.silent_after_seconds


def _heard(session: Session, cluster: ClusterRow) -> dict[str, datetime]:
    """The nodes that were heard once. One that is no longer declared may be silent."""
    declared = {name for group in cluster.definition.get("groups", ()) for name in expand_nodes(group["nodes"])}
    query = select(NodeRow.name, NodeRow.last_heard_at).where(NodeRow.cluster == cluster.name)
    return {name: at for name, at in session.exec(query) if at is not None and name in declared}


def _without_switched_off(
    session: Session, cluster: str, heard: dict[str, datetime], *, before: datetime
) -> tuple[dict[str, datetime], set[str]]:
    """Of those last heard before that, leave out what is switched off, and count others from when they booted."""
    old = [name for name, at in heard.items() if at < before]
    query = select(NodeRow.name, NodeRow.facts).where(NodeRow.cluster == cluster, col(NodeRow.name).in_(old))
    known = {name: NodeFacts.model_validate(facts) for name, facts in session.exec(query) if facts}
    off = {name for name, facts in known.items() if is_switched_off(facts)}
    # No boot is later than the answer that tells of it, whatever the node's clock says.
    booted = {
        name: max(heard[name], min(facts.boot_time, facts.at)) for name, facts in known.items() if facts.boot_time
    }
    return {name: at for name, at in (heard | booted).items() if name not in off}, off


def _found(session: Session, cluster: str) -> set[str]:
    """The nodes that have been found silent; the gateway's finding stands under `CLUSTER_WIDE`."""
    query = select(FindingRow.node).where(
        FindingRow.cluster == cluster, FindingRow.fault == SILENT, FindingRow.status == FindingStatus.FIRING
    )
    return set(session.exec(query))


def _changes(cluster: str, found: set[str], verdict: Silence, now: datetime, *, excused: set[str]) -> list[Observation]:
    """What is new. A node's silence ends by its own pulse, or because it is switched off."""
    seen = [_observation(cluster, node, NODE, FindingStatus.FIRING, now) for node in sorted(verdict.nodes - found)]
    seen += [_observation(cluster, node, NODE, FindingStatus.CLEARED, now) for node in sorted(found & excused)]
    if verdict.gateway != (CLUSTER_WIDE in found):
        status = FindingStatus.FIRING if verdict.gateway else FindingStatus.CLEARED
        seen.append(_observation(cluster, CLUSTER_WIDE, GATEWAY, status, now))
    return seen


def _observation(cluster: str, node: str, entity: str, status: FindingStatus, now: datetime) -> Observation:
    return Observation(cluster, node, SILENT, entity, status, now, now, "silence")
