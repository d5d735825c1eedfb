"""The installation as people read it: clusters, freezes, the catalogue of faults, the audit chain."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict

from sqlmodel import Session, col, func, select

from daytwo.faults.catalogue import catalogue
from daytwo.service.models import (
    AuditVerdict,
    AuditView,
    ClusterView,
    FaultView,
    FreezeView,
    Page,
)
from daytwo.service.reads.lookup import find_cluster, find_fault
from daytwo.service.reads.paging import Filter, page, row_number, view
from daytwo.store import audit
from daytwo.store.tables import AuditRow, ClusterRow, FreezeRow, NodeRow


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


def _nodes_by_state(session: Session) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    found = select(NodeRow.cluster, NodeRow.state, func.count()).group_by(col(NodeRow.cluster), col(NodeRow.state))
    for cluster, state, count in session.exec(found).all():
        counts[cluster][state] = count
    return counts
