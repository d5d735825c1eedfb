"""The installation as people read it: status, clusters, freezes, the catalogue of faults, the audit chain."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from datetime import datetime

from sqlmodel import Session, col, func, select

from daytwo.domain.vocabulary import DecisionStatus, FindingStatus, NodeState
from daytwo.faults.catalogue import catalogue
from daytwo.service.models import (
    AuditVerdict,
    AuditView,
    ClusterView,
    FaultView,
    FreezeView,
    LoopView,
    Page,
    Status,
)
from daytwo.service.reads.lookup import find_cluster, find_fault
from daytwo.service.reads.paging import Filter, page, row_number, view
from daytwo.store import audit
from daytwo.store.tables import AuditRow, ClusterRow, DecisionRow, FindingRow, FreezeRow, LeaseRow, NodeRow, RepairRow


def status(session: Session, now: datetime) -> Status:
    """The installation in one answer; `healthy` only when nodes, loops and freezes all say so."""
    nodes = dict(session.exec(select(NodeRow.state, func.count()).group_by(col(NodeRow.state))).all())
    is_open = col(RepairRow.open_key).is_not(None)
    repairs = session.exec(select(RepairRow.state, func.count()).where(is_open).group_by(col(RepairRow.state))).all()
    firing = select(func.count()).select_from(FindingRow).where(FindingRow.status == FindingStatus.FIRING.value)
    pending = select(func.count()).select_from(DecisionRow).where(DecisionRow.status == DecisionStatus.PENDING.value)
    frozen, loops = _active_freezes(session), _loops(session, now)
    return Status(
        at=now,
        healthy=_is_healthy(nodes, loops) and not frozen,
        nodes=nodes,
        repairs=dict(repairs),
        firing=session.exec(firing).one(),
        decisions_pending=session.exec(pending).one(),
        freezes=frozen,
        loops=loops,
    )


def clusters(session: Session, wanted: Filter) -> Page[ClusterView]:
    """The declared clusters, by name."""
    found = select(ClusterRow).order_by(col(ClusterRow.name)).limit(wanted.limit + 1)
    if wanted.after:
        found = found.where(ClusterRow.name > wanted.after)
    rows = session.exec(found).all()
    counts = _nodes_by_state(session)
    return page(rows, wanted.limit, view=lambda r: view(ClusterView, r, nodes=counts[r.name]), key=lambda r: r.name)


def cluster(session: Session, name: str) -> ClusterView:
    """One declared cluster. Raises `NotFound`."""
    row = find_cluster(session, name)
    return view(ClusterView, row, nodes=_nodes_by_state(session)[row.name])


def freezes(session: Session, wanted: Filter) -> Page[FreezeView]:
    """Freezes, newest first; those that hold, or all."""
    found = select(FreezeRow).order_by(col(FreezeRow.id).desc()).limit(wanted.limit + 1)
    if wanted.active_only:
        found = found.where(col(FreezeRow.thawed_at).is_(None))
    if wanted.after:
        found = found.where(col(FreezeRow.id) < row_number(wanted.after))
    return page(session.exec(found).all(), wanted.limit, view=freeze_view, key=lambda row: str(row.id))


def freeze_view(row: FreezeRow) -> FreezeView:
    """A freeze as people see it."""
    return view(FreezeView, row)


def faults() -> Page[FaultView]:
    """The whole catalogue, in its own order."""
    return Page(items=tuple(view(FaultView, fault) for fault in catalogue().all()))


def fault(fault_id: str) -> FaultView:
    """One entry; an Xid without an entry of its own shows as an unknown code. Raises `NotFound`."""
    return view(FaultView, find_fault(fault_id))


def audit_rows(session: Session, wanted: Filter) -> Page[AuditView]:
    """The audit chain, newest first; `subject` is a repair id, a node, a cluster or a scope."""
    found = select(AuditRow).order_by(col(AuditRow.number).desc()).limit(wanted.limit + 1)
    if wanted.subject:
        found = found.where(AuditRow.subject == wanted.subject)
    if wanted.after:
        found = found.where(col(AuditRow.number) < row_number(wanted.after))
    rows = session.exec(found).all()
    return page(rows, wanted.limit, view=lambda row: view(AuditView, row), key=lambda row: str(row.number))


def audit_verdict(session: Session) -> AuditVerdict:
    """Walk the whole audit chain."""
    return AuditVerdict(**asdict(audit.verify(session)))


def _active_freezes(session: Session) -> tuple[FreezeView, ...]:
    return freezes(session, Filter(active_only=True)).items


def _loops(session: Session, now: datetime) -> tuple[LoopView, ...]:
    rows = session.exec(select(LeaseRow).order_by(col(LeaseRow.name))).all()
    return tuple(view(LoopView, row, alive=row.expires_at > now) for row in rows)


def _is_healthy(nodes: dict[str, int], loops: tuple[LoopView, ...]) -> bool:
    # No node and no loop is nothing known, which is not healthy.
    return set(nodes) == {NodeState.HEALTHY.value} and bool(loops) and all(loop.alive for loop in loops)


def _nodes_by_state(session: Session) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    found = select(NodeRow.cluster, NodeRow.state, func.count()).group_by(col(NodeRow.cluster), col(NodeRow.state))
    for cluster, state, count in session.exec(found).all():
        counts[cluster][state] = count
    return counts
