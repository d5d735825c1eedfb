"""After a storm its nodes are asked about a few at a time: what still fires must not be a thousand proposals at once.

Part of the reconciler. As many repairs are open of one storm in a pool as nodes of it may be acted on at once; the
next is opened when one of them has ended. A fault that fell by itself waits for nobody.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlmodel import col, select

from daytwo.adapters import Cluster
from daytwo.budgets import allowed_out
from daytwo.domain.common_cause import storm_behind
from daytwo.domain.situation import DomainTrouble, Situation
from daytwo.domain.verdicts import Propose
from daytwo.domain.vocabulary import FaultClass, FindingStatus
from daytwo.store.engine import Store
from daytwo.store.surroundings import class_of
from daytwo.store.tables import NodeRow, RepairRow

LOOK_AGAIN: Final = timedelta(seconds=30)


class Batches:
    """Says whose turn it is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def wait_for_turn(self, cluster: Cluster, situation: Situation, verdict: Propose) -> timedelta | None:
        """How long to wait before a repair is opened for this node; `None` where it may be opened now."""
        kind = class_of(verdict.advice.fault)
        storm = _storm(cluster, situation, verdict, kind)
        if storm is None:
            return None
        allowed = allowed_out(situation.pool_nodes, cluster.definition.policy.budget)
        return LOOK_AGAIN if self._open_now(situation, kind) >= allowed else None

    def _open_now(self, situation: Situation, kind: FaultClass) -> int:
        """Repairs that the policy has opened in the pool for this class of fault, and that have not ended."""
        in_pool = select(NodeRow.name).where(NodeRow.cluster == situation.cluster, NodeRow.pool == situation.pool)
        opened = (
            RepairRow.cluster == situation.cluster,
            col(RepairRow.open_key).is_not(None),
            RepairRow.opened_by == "policy",
            col(RepairRow.node).in_(in_pool),
        )
        with self._store.read() as session:
            faults = session.exec(select(RepairRow.fault).where(*opened)).all()
        # One that is just being opened has no fault yet: it is taken for one of these.
        return sum(fault is None or class_of(fault) is kind for fault in faults)


def _storm(cluster: Cluster, situation: Situation, verdict: Propose, kind: FaultClass) -> DomainTrouble | None:
    firing = [each for each in situation.findings if each.status is FindingStatus.FIRING]
    began = [each.first_seen for each in firing if each.fault in verdict.advice.faults and class_of(each.fault) is kind]
    if not began:
        return None
    return storm_behind(situation, cluster.definition.policy, kind, since=min(began))
