"""Looks at many nodes of a cluster at once: loads them, judges them, and keeps count of whom it lets be contained.

Part of the reconciler. What nodes have in common is kept between two looks while nothing has changed in it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import func
from sqlmodel import Session, col, select

from daytwo.adapters import Cluster
from daytwo.controller.marks import orphaned
from daytwo.domain.node_states import NodeLook, node_state
from daytwo.domain.repair_states import LEAVES_MARKS
from daytwo.domain.situation import Situation
from daytwo.domain.triage import asking, triage
from daytwo.domain.verdicts import Propose, Verdict, Withhold
from daytwo.domain.vocabulary import Action, FindingStatus, NodeState
from daytwo.domain.withholding import given_away
from daytwo.faults.catalogue import catalogue
from daytwo.store.engine import Store
from daytwo.store.situations import Own, load_own, situation_of
from daytwo.store.surroundings import Pools, Surroundings, Trouble, load_pools, load_trouble, survives_reboot
from daytwo.store.tables import FindingRow, NodeRow

log = logging.getLogger(__name__)

MARKS_SHOW_AFTER: Final = timedelta(seconds=30)
"""Within this a scheduler that answers has been read again."""
POOLS_FOR: Final = timedelta(seconds=2)
"""Counts of pools are kept this long: the scheduler is read as often."""
TAKEN_FOR: Final = timedelta(minutes=2)
"""A node that was let be contained counts as out for so long, until the scheduler itself says so: in a storm on a slow
machine it may be its turn only then."""


class Looked(NamedTuple):
    """One look at a node. `row` is as it was loaded; `told` is the outcome that its open repair was told of last.

    `orphan` is whose mark stands on the node though nothing stands behind it any more.
    """

    row: NodeRow
    situation: Situation
    verdict: Verdict
    state: tuple[NodeState, str]
    told: str | None
    orphan: str | None

    @property
    def contain(self) -> bool:
        """Whether new work is to be kept off the node unasked."""
        return isinstance(self.verdict, Propose | Withhold) and self.verdict.contain

    @property
    def digest(self) -> str:
        """What a repair must hear of: the advice, the marks, the boot. Not counts, which change all the time."""
        verdict, facts = self.verdict, self.situation.facts
        parts = [verdict.kind, str(self.situation.boot_id)]
        if isinstance(verdict, Propose):
            parts += [verdict.advice.action, str(verdict.advice.rung), *verdict.advice.faults]
        if facts is not None:
            parts += [facts.ownership, str(facts.boot_time), facts.drained_by]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


class Kept(NamedTuple):
    """What was loaded of a cluster, and the state that the findings were in."""

    cluster: Cluster
    findings: tuple[int, int | None]
    trouble: Trouble
    survives_reboot: dict[str, dict[str, bool]]
    pools: Pools
    pools_at: datetime


class Looking:
    """Looks at nodes. Called in a thread, by one at a time."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._kept: dict[str, Kept] = {}
        self._taken: dict[tuple[str, str], datetime] = {}

    def look(self, cluster: Cluster, names: Collection[str]) -> tuple[list[Looked], list[str]]:
        """Judge nodes as they are at one moment. Returns the looks, and the names of nodes whose look failed."""
        now, name = self._now(), cluster.definition.name
        with self._store.read() as session:
            rows = session.exec(select(NodeRow).where(NodeRow.cluster == name, col(NodeRow.name).in_(names))).all()
            around = self._surroundings(session, cluster, now)
            own = load_own(session, name, names, now)
            orphans = orphaned(session, rows, own.opened, now)
        looked, failed = [], []
        for row in rows:
            try:
                looked.append(self._judge(cluster, row, around, own, orphan=orphans.get(row.name)))
            except Exception:
                log.exception("%s/%s: the look failed", name, row.name)
                failed.append(row.name)
        return looked, failed

    def _judge(self, cluster: Cluster, row: NodeRow, around: Surroundings, own: Own, *, orphan: str | None) -> Looked:
        now, policy = self._now(), cluster.definition.policy
        situation = situation_of(row, around, own, policy_revision=cluster.policy_revision, able=cluster.able())
        verdict = triage(situation, policy, catalogue(), now)
        state = node_state(_node_look(row, situation, cluster, now))
        opened = own.opened.get(row.name)
        looked = Looked(row, situation, verdict, state, opened.outcome_digest if opened else None, orphan)
        if looked.contain:
            self._take(row, around.pools, now)
        return looked

    def _take(self, row: NodeRow, pools: Pools, now: datetime) -> None:
        """The next node is judged with this one out: a batch must not spend the budget many times over."""
        pools.out[row.pool].add(row.name)
        self._taken[row.cluster, row.name] = now

    def _surroundings(self, session: Session, cluster: Cluster, now: datetime) -> Surroundings:
        name, findings = cluster.definition.name, _state_of_findings(session, cluster.definition.name)
        kept = self._kept.get(name)
        if kept is None or kept.cluster is not cluster or kept.findings != findings:
            trouble, lasting = load_trouble(session, cluster.definition, now), survives_reboot(cluster.definition)
        else:
            trouble, lasting = kept.trouble, kept.survives_reboot
        fresh = kept is not None and kept.cluster is cluster and now - kept.pools_at < POOLS_FOR
        pools, at = (kept.pools, kept.pools_at) if kept and fresh else (self._pools(session, name, now), now)
        self._kept[name] = Kept(cluster, findings, trouble, lasting, pools, at)
        return Surroundings(pools, trouble, lasting)

    def _pools(self, session: Session, cluster: str, now: datetime) -> Pools:
        self._taken = {node: at for node, at in self._taken.items() if now - at < TAKEN_FOR}
        pools = load_pools(session, cluster)
        taken = [node for its_cluster, node in self._taken if its_cluster == cluster]
        where = select(NodeRow.name, NodeRow.pool).where(NodeRow.cluster == cluster, col(NodeRow.name).in_(taken))
        for node, pool in session.exec(where):
            pools.out[pool].add(node)
        return pools


def _state_of_findings(session: Session, cluster: str) -> tuple[int, int | None]:
    """Changes whenever a finding begins or ends, and costs next to nothing to ask."""
    firing = (FindingRow.cluster == cluster, FindingRow.status == FindingStatus.FIRING)
    query = select(func.count(), func.max(FindingRow.last_observation)).where(*firing)
    count, last = session.exec(query).one()
    return count, last


def _node_look(node: NodeRow, situation: Situation, cluster: Cluster, now: datetime) -> NodeLook:
    opened = situation.open_repair
    asked = asking(situation, cluster.definition.policy, catalogue())
    fires = dict.fromkeys(each.fault for each in situation.findings if each.status is FindingStatus.FIRING)
    return NodeLook(
        repair_state=opened.state if opened else None,
        repair_id=opened.repair_id if opened else None,
        firing=asked,
        recorded=tuple(fault for fault in fires if fault not in asked),
        facts=situation.facts,
        last_heard_at=node.last_heard_at,
        silent_after_seconds=cluster.definition.policy.timing.silent_after_seconds,
        now=now,
        given_away=given_away(situation) or _just_left(situation, now),
        leaves=opened is not None and opened.action is Action.REMOVE,
        held=situation.held,
    )


def _just_left(situation: Situation, now: datetime) -> str:
    """A node that was removed or handed over a moment ago: its scheduler may not have been read since it was marked."""
    last = situation.history[0] if situation.history else None
    if last is None or last.outcome not in LEAVES_MARKS or now - last.closed_at > MARKS_SHOW_AFTER:
        return ""
    is_read = situation.facts is not None and situation.facts.at > last.closed_at
    return "" if is_read else f"{last.outcome} with {last.repair_id}"


def common_causes(looks: Sequence[Looked]) -> list[Looked]:
    """The looks that found a node to be one of many with one cause."""
    return [each for each in looks if isinstance(each.verdict, Withhold) and each.verdict.cause == "common-cause"]
