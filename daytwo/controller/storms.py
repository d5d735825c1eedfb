"""Many nodes that fall at once for one cause: one incident, one notice, one more at its end. Part of the reconciler.

An incident is one cluster and one class of fault, whatever racks and pools it goes through: somebody who is told of a
pool need not be told of each of its racks. It opens when triage first holds a node back for a common cause, so never
for what the policy only records, and ends when too few are left for one cause, for as long as a fault must be clear.
Until then the findings wait as firing; afterwards each node is judged as it is then, and nothing is replayed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import and_, func, or_
from sqlmodel import Session, col, select

from daytwo.adapters import Cluster
from daytwo.controller.leases import LeaseLost
from daytwo.controller.looking import Looked, common_causes
from daytwo.controller.marks import Marks, carries
from daytwo.controller.means import Means
from daytwo.controller.notices import began, ended
from daytwo.domain.common_cause import is_one_cause, pool_domain
from daytwo.domain.errors import DaytwoError
from daytwo.domain.ids import containment_id, incident_of, new_id
from daytwo.domain.seams import ActKind
from daytwo.domain.situation import DomainTrouble
from daytwo.domain.verdicts import Propose
from daytwo.domain.vocabulary import FaultClass, FindingStatus, Mark
from daytwo.intents import Ledger
from daytwo.store import audit
from daytwo.store.surroundings import class_of, load_trouble
from daytwo.store.tables import ClusterRow, FindingRow, IncidentRow, IntentRow, NodeRow, RepairRow

log = logging.getLogger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)
SPREADS_AFTER: Final = timedelta(minutes=10)
"""People are told again of an incident that has reached other domains, at most this often."""


class Storms:
    """The incidents of all clusters."""

    def __init__(self, means: Means, ledger: Ledger) -> None:
        self._store, self._adapters, self._notifier, self._guard, self._now = means
        self._ledger = ledger
        self._marks = Marks(means.store, ledger, means.guard)
        self._looked_at: datetime | None = None
        self._quiet_since: dict[str, datetime] = {}

    # ---- while nodes are looked at

    async def see(self, cluster: Cluster, looks: Sequence[Looked]) -> None:
        """Open an incident for every class of fault that nodes are held back for, unless there is one."""
        classes = {kind for each in common_causes(looks) for kind in _classes(each)}
        if classes:
            await asyncio.to_thread(self._open, cluster, classes)

    def _open(self, cluster: Cluster, classes: set[FaultClass]) -> None:
        keys = {f"{cluster.definition.name}/{kind}": kind for kind in classes}
        with self._store.read() as session:
            known = session.exec(select(IncidentRow.open_key).where(col(IncidentRow.open_key).in_(keys))).all()
        for key in sorted(set(keys) - set(known)):
            self._add(cluster, key, keys[key])

    def _add(self, cluster: Cluster, key: str, kind: FaultClass) -> None:
        now = self._now()
        with self._store.write() as session:
            self._guard(session)
            seen = _Seen.now(session, cluster, kind, now)
            row = IncidentRow(
                id=new_id("i", now),
                cluster=cluster.definition.name,
                fault_class=kind,
                open_key=key,
                opened_at=now,
                first_at=seen.first_at or now,
                last_at=seen.last_at or now,
                domains=seen.domains,
                nodes=seen.nodes,
            )
            session.add(row)
            told = {"class": kind.value, "domains": seen.domains}
            audit.append(session, actor="policy", act="open-incident", subject=row.id, data=told, now=now)

    async def contain(self, cluster: Cluster, looked: Looked) -> None:
        """Keep new work off a node that is held back, in the incident's name. Raises as `Marks.contain` does."""
        situation = looked.situation
        incident = await asyncio.to_thread(self._incident_for, cluster.definition.name, _classes(looked))
        if incident is None or carries(situation.facts, containment_id(incident, situation.node)):
            return
        mark = Mark(repair_id=containment_id(incident, situation.node), text=f"contained, {looked.verdict.why}")
        await self._marks.contain(cluster, situation.node, mark)

    def _incident_for(self, cluster: str, classes: Iterable[FaultClass]) -> str | None:
        keys = [f"{cluster}/{kind}" for kind in classes]
        with self._store.read() as session:
            found = select(IncidentRow.id).where(col(IncidentRow.open_key).in_(keys)).order_by(col(IncidentRow.id))
            return session.exec(found).first()

    # ---- by itself

    def forget_times(self) -> None:
        """The clock was put back: the next step looks, and quiet is counted anew."""
        self._looked_at = None
        self._quiet_since.clear()

    async def step(self, now: datetime) -> None:
        """Look at all incidents, once a second: who is in them, what people must be told, whether they are over."""
        if self._looked_at is not None and now < self._looked_at + LOOK_EVERY:
            return
        self._looked_at = now
        for row in await asyncio.to_thread(self._going_on):
            try:
                await self._follow(row, now)
            except LeaseLost:
                raise
            except DaytwoError as error:
                log.warning("incident %s: %s", row.id, error)

    def _going_on(self) -> list[IncidentRow]:
        untold = and_(col(IncidentRow.told_at).is_not(None), col(IncidentRow.end_told_at).is_(None))
        declared = col(IncidentRow.cluster).in_(select(ClusterRow.name))
        going_on = select(IncidentRow).where(or_(col(IncidentRow.open_key).is_not(None), untold), declared)
        with self._store.read() as session:
            return list(session.exec(going_on))

    async def _follow(self, row: IncidentRow, now: datetime) -> None:
        cluster = await asyncio.to_thread(self._adapters.cluster, row.cluster)
        if row.open_key is not None:
            row = await asyncio.to_thread(self._count, row.id, cluster, now)
        if row.open_key is not None and _is_to_be_told(row, cluster, now):
            await self._tell(row, began(row, await asyncio.to_thread(self._account, row), cluster), is_end=False)
        over = row.open_key is None or has_been_held(row, cluster, now)
        if over and row.told_at is not None and row.end_told_at is None:
            await self._tell(row, ended(row, await asyncio.to_thread(self._account, row), cluster), is_end=True)

    def _count(self, incident: str, cluster: Cluster, now: datetime) -> IncidentRow:
        """Bring the row up to date; it is closed when too few have been left for long enough."""
        with self._store.read() as session:
            seen = _Seen.now(session, cluster, FaultClass(session.get_one(IncidentRow, incident).fault_class), now)
        with self._store.write() as session:
            self._guard(session)
            row = session.get_one(IncidentRow, incident, with_for_update=True)
            if seen.domains:
                self._quiet_since.pop(incident, None)
                row.domains, row.nodes = seen.domains, max(row.nodes, seen.nodes)
                row.last_at = max(row.last_at, seen.last_at or row.last_at)
                if row.end_told_at is not None and row.last_at > row.end_told_at:
                    row.told_at, row.end_told_at = None, None  # another wave: people are told again
            elif now - self._quiet_since.setdefault(incident, now) >= _quiet_for(cluster):
                row.open_key, row.closed_at = None, now
                audit.append(session, actor="policy", act="close-incident", subject=row.id, data={}, now=now)
            session.add(row)
        if row.open_key is None:
            for owner in self._unresolved():
                if incident_of(owner) == row.id:
                    self._ledger.give_up(owner, "the incident is over")
        return row

    async def _tell(self, row: IncidentRow, notice: tuple[str, str], *, is_end: bool) -> None:
        try:
            await self._notifier.tell(*notice, urgent=not is_end)
        except Exception as error:  # whatever a channel raises: told again at the next look
            log.warning("incident %s: nobody could be told: %s", row.id, error)
            return
        await asyncio.to_thread(self._set_told, row.id, is_end=is_end)

    def _set_told(self, incident: str, *, is_end: bool) -> None:
        with self._store.write() as session:
            self._guard(session)
            row = session.get_one(IncidentRow, incident, with_for_update=True)
            if is_end:
                row.end_told_at = self._now()
            else:
                row.told_at, row.told_domains = self._now(), sorted(row.domains)
            session.add(row)

    def _account(self, row: IncidentRow) -> Mapping[str, int]:
        """What daytwo has done, in figures: nodes that carry the incident's mark, and repairs that were opened."""
        its = col(IntentRow.repair_id).startswith(f"{row.id}-", autoescape=True)
        marked = (its, IntentRow.kind == ActKind.DRAIN, IntentRow.state == "proven")
        opened = (
            RepairRow.cluster == row.cluster,
            RepairRow.opened_at >= row.first_at,
            RepairRow.opened_by == "policy",
        )
        nodes = select(func.count()).select_from(NodeRow).where(NodeRow.cluster == row.cluster)
        with self._store.read() as session:
            contained = session.exec(select(func.count(func.distinct(IntentRow.node))).where(*marked)).one()
            repairs = session.exec(select(func.count()).select_from(RepairRow).where(*opened)).one()
            firing = len(_firing(session, row.cluster, FaultClass(row.fault_class)))
            return {"contained": contained, "repairs": repairs, "firing": firing, "nodes": session.exec(nodes).one()}

    async def resolve(self) -> None:
        """Go on with acts that nobody asks for any more, so that they do not lock their nodes."""
        for owner in await asyncio.to_thread(self._unresolved):
            try:
                await self._ledger.carry_on(owner)
            except LeaseLost:
                raise
            except DaytwoError as error:
                log.info("%s: %s", owner, error)

    def _unresolved(self) -> list[str]:
        with self._store.read() as session:
            is_open = select(RepairRow.id).where(col(RepairRow.open_key).is_not(None))
            left = (col(IntentRow.open_node).is_not(None), col(IntentRow.repair_id).not_in(is_open))
            return list(session.exec(select(IntentRow.repair_id).where(*left).distinct()))


class _Seen(NamedTuple):
    """What goes on of one class of fault in a cluster, in the domains where it is taken for one cause."""

    domains: dict[str, int]
    nodes: int
    first_at: datetime | None
    last_at: datetime | None

    @classmethod
    def now(cls, session: Session, cluster: Cluster, kind: FaultClass, now: datetime) -> _Seen:
        policy, sizes = cluster.definition.policy, _pool_sizes(session, cluster.definition.name)
        every = [each for here in load_trouble(session, cluster.definition, now).values() for each in here]
        # For as long as they fire, and not only while they are held back: the marks of those that wait stay.
        ours = [
            each
            for each in every
            if each.fault_class == kind and is_one_cause(each, policy, sizes, now=each.last_at or now)
        ]
        if not ours:
            return cls({}, 0, None, None)
        nodes = _firing(session, cluster.definition.name, kind)
        return cls(_domains(ours), len(nodes), _earliest(ours), _latest(ours))


def _domains(troubles: Iterable[DomainTrouble]) -> dict[str, int]:
    """Nodes by domain, the largest first."""
    found: dict[str, int] = {}
    for trouble in sorted(troubles, key=lambda each: (-each.nodes, each.domain)):
        found.setdefault(trouble.domain, trouble.nodes)
    return found


def _earliest(troubles: Iterable[DomainTrouble]) -> datetime | None:
    return min((each.first_at for each in troubles if each.first_at), default=None)


def _latest(troubles: Iterable[DomainTrouble]) -> datetime | None:
    return max((each.last_at for each in troubles if each.last_at), default=None)


def _pool_sizes(session: Session, cluster: str) -> dict[str, int]:
    here = (NodeRow.cluster == cluster, col(NodeRow.left_at).is_(None))
    sizes = select(NodeRow.pool, func.count()).where(*here).group_by(col(NodeRow.pool))
    return {pool_domain(pool): size for pool, size in session.exec(sizes)}


def _firing(session: Session, cluster: str, kind: FaultClass) -> set[str]:
    firing = (FindingRow.cluster == cluster, FindingRow.status == FindingStatus.FIRING)
    found = session.exec(select(FindingRow.node, FindingRow.fault).where(*firing).distinct())
    return {node for node, fault in found if class_of(fault) is kind}


def _classes(looked: Looked) -> list[FaultClass]:
    verdict = looked.verdict
    faults = verdict.advice.faults if isinstance(verdict, Propose) else getattr(verdict, "faults", ())
    return sorted({class_of(fault) for fault in faults})


def has_been_held(row: IncidentRow, cluster: Cluster, now: datetime) -> bool:
    """True when its nodes are asked about again although they still fire: people are told first, and once."""
    return now > row.last_at + timedelta(seconds=cluster.definition.policy.breaker.hold_seconds)


def _quiet_for(cluster: Cluster) -> timedelta:
    return timedelta(seconds=cluster.definition.policy.timing.auto_resolve_seconds)


def _is_to_be_told(row: IncidentRow, cluster: Cluster, now: datetime) -> bool:
    """Once its signals have come in, as with a proposal; again when it has reached other domains."""
    if row.told_at is not None:
        return now >= row.told_at + SPREADS_AFTER and not set(row.domains) <= set(row.told_domains)
    timing = cluster.definition.policy.timing
    quiet = now >= row.last_at + timedelta(seconds=timing.settle_seconds)
    return quiet or now >= row.opened_at + timedelta(seconds=timing.settle_at_most_seconds)
