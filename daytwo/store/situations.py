"""Loads what triage looks at: one node, now. Called by the reconciler and by `assess`; reads only."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, col, select

from daytwo.domain.cases import entry_of
from daytwo.domain.common_cause import count_trouble, pool_domain
from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import NotFound
from daytwo.domain.load_definition import expand_nodes
from daytwo.domain.seams import NodeFacts
from daytwo.domain.situation import DomainTrouble, OpenRepair, PastRepair, Situation
from daytwo.domain.vocabulary import Action, Finding, FindingStatus, NodeRole, State, Workload
from daytwo.faults.catalogue import catalogue
from daytwo.repairs import is_out
from daytwo.store.tables import FindingRow, NodeRow, RepairRow

HISTORY: Final = timedelta(days=28)
"""How far back repairs count: three incidents on one GPU in 28 days propose its removal (operations.md 3)."""


def load_situation(
    session: Session,
    node: NodeRow,
    definition: ClusterDefinition,
    *,
    policy_revision: int,
    facts: NodeFacts | None,
    workloads: tuple[Workload, ...] | None,
    able: frozenset[Action] | None = None,
    now: datetime,
) -> Situation:
    """Everything known of `node`. `facts` and `workloads` come from the caller, who may have read them just now."""
    pool = session.exec(select(NodeRow).where(NodeRow.cluster == node.cluster, NodeRow.pool == node.pool)).all()
    return Situation(
        cluster=node.cluster,
        node=node.name,
        role=NodeRole(node.role),
        pool=node.pool,
        domains=tuple(node.domains),
        expected_gpus=node.expected_gpus,
        boot_id=node.boot_id,
        last_heard_at=node.last_heard_at,
        facts=facts,
        findings=findings_of(session, node.cluster, node.name),
        workloads=workloads,
        history=_history(session, node, now),
        open_repair=_open_repair(session, node),
        trouble=_trouble(session, node, definition, now),
        pool_nodes=len(pool),
        pool_contained=sum(is_out(other) for other in pool if other.name != node.name),
        policy_revision=policy_revision,
        survives_reboot=_survives_reboot(definition, node.name),
        able=able,
    )


def node_row(session: Session, cluster: str, name: str) -> NodeRow:
    """The row of a declared node. Raises `NotFound`."""
    row = session.get(NodeRow, (cluster, name))
    if row is None:
        raise NotFound(f"node: found {cluster}/{name}, which is not declared; `daytwo nodes list` shows those that are")
    return row


def findings_of(session: Session, cluster: str, node: str) -> tuple[Finding, ...]:
    """All findings of a node, firing and cleared."""
    rows = session.exec(select(FindingRow).where(FindingRow.cluster == cluster, FindingRow.node == node)).all()
    return tuple(_finding(row) for row in rows)


def _finding(row: FindingRow) -> Finding:
    return Finding(
        id=row.id or 0,
        cluster=row.cluster,
        node=row.node,
        fault=row.fault,
        entity=row.entity,
        status=FindingStatus(row.status),
        count=row.count,
        first_seen=row.first_seen,
        last_seen=row.last_received,
        cleared_at=row.cleared_at,
        cleared_by=row.cleared_by,
        boot_id=row.boot_id,
        source=row.source,
        evidence=tuple(row.evidence),
        detail=row.detail,
    )


def _history(session: Session, node: NodeRow, now: datetime) -> tuple[PastRepair, ...]:
    closed = (RepairRow.cluster == node.cluster, RepairRow.node == node.name, col(RepairRow.closed_at) > now - HISTORY)
    rows = session.exec(select(RepairRow).where(*closed).order_by(col(RepairRow.closed_at).desc())).all()
    return tuple(_past(row, row.closed_at) for row in rows if row.closed_at)


def _past(row: RepairRow, closed_at: datetime) -> PastRepair:
    return PastRepair(
        repair_id=row.id,
        fault=row.fault,
        action=Action(row.action) if row.action else None,
        rung=row.rung,
        outcome=State(row.state),
        acted="acted" in row.stamps,
        opened_at=row.opened_at,
        closed_at=closed_at,
        snooze_until=row.snooze_until,
        faults=tuple((row.proposal or {}).get("faults", ())),
        entities=tuple((row.proposal or {}).get("entities", ())),
    )


def _open_repair(session: Session, node: NodeRow) -> OpenRepair | None:
    row = session.exec(select(RepairRow).where(RepairRow.open_key == f"{node.cluster}/{node.name}")).first()
    if row is None:
        return None
    return OpenRepair(
        repair_id=row.id,
        state=row.state,
        revision=row.revision,
        rung=row.rung,
        action=Action(row.action) if row.action else None,
        contained=row.contained,
        disturbed=row.disturbed,
    )


def _trouble(
    session: Session, node: NodeRow, definition: ClusterDefinition, now: datetime
) -> tuple[DomainTrouble, ...]:
    """What began to be wrong at the same time in the domains of this node; its pool is one of them."""
    firing = (FindingRow.cluster == node.cluster, FindingRow.status == FindingStatus.FIRING)
    by_node: dict[str, list[Finding]] = {}
    for row in session.exec(select(FindingRow).where(*firing)).all():
        by_node.setdefault(row.node, []).append(_finding(row))
    members = session.exec(select(NodeRow).where(NodeRow.cluster == node.cluster, col(NodeRow.name).in_(by_node))).all()
    domains = {other.name: (*other.domains, pool_domain(other.pool)) for other in members}
    window = timedelta(seconds=definition.policy.breaker.window_seconds)
    known = catalogue()
    return count_trouble(by_node, domains, lambda fault: entry_of(known, fault).fault_class, window=window, now=now)


def _survives_reboot(definition: ClusterDefinition, name: str) -> dict[str, bool]:
    for group in definition.groups:
        if name in expand_nodes(group.nodes):
            return group.survives_reboot
    return {}
