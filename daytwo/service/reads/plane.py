"""The installation as people read it: clusters, freezes, the catalogue of faults, the audit chain."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from daytwo.domain.errors import NotFound
from daytwo.faults.catalogue import catalogue
from daytwo.service.models.paging import Page
from daytwo.service.models.plane import AuditVerdict, AuditView, ClusterView, FreezeView
from daytwo.service.models.rules import FaultView
from daytwo.service.reads.lookup import find_cluster, find_fault, find_node
from daytwo.service.reads.paging import Filter, page, row_number, view
from daytwo.store import audit
from daytwo.store.tables import AuditRow, ClusterRow, FreezeRow, NodeRow, RepairRow


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


def freeze_view(row: FreezeRow, *, again: bool = False) -> FreezeView:
    """A freeze as people see it."""
    return view(FreezeView, row, again=again)


def faults() -> Page[FaultView]:
    """The whole catalogue, in its own order."""
    return Page(items=tuple(view(FaultView, fault) for fault in catalogue().all()))


def fault(fault_id: str) -> FaultView:
    """One entry; an Xid without an entry of its own shows as an unknown code. Raises `NotFound`."""
    return view(FaultView, find_fault(fault_id))


def audit_rows(session: Session, wanted: Filter) -> Page[AuditView]:
    """The audit chain, newest first; `subject` is a repair, a node (with its repairs), a cluster, a scope or `*`.

    Raises `NotFound` for a subject that is nothing of these and has no row, and `BadInput` as `find_node`.
    """
    found = select(AuditRow).order_by(col(AuditRow.number).desc()).limit(wanted.limit + 1)
    if wanted.subject:
        found = found.where(_is_about(session, wanted.subject))
    if wanted.after:
        found = found.where(col(AuditRow.number) < row_number(wanted.after))
    rows = session.exec(found).all()
    return page(rows, wanted.limit, view=lambda row: view(AuditView, row), key=lambda row: str(row.number))


def _is_about(session: Session, subject: str) -> ColumnElement[bool]:
    """What rows are about: the subject itself, and for a node also each of its repairs."""
    exactly = col(AuditRow.subject) == subject
    known = session.get(ClusterRow, subject) is not None or session.get(RepairRow, subject) is not None
    if subject == "*" or known:
        return exactly
    cluster, name = _node_named(session, subject)
    if not name:
        if session.exec(select(AuditRow.number).where(exactly).limit(1)).first() is None:
            raise NotFound(
                f"there is no node, repair, cluster or scope {subject!r}, and nothing on record about one",
                why="A subject is `node`, `cluster/node`, a repair's id, a cluster, or `*`.",
                following="daytwo nodes list; daytwo repairs list --all; daytwo clusters list",
            )
        return exactly
    theirs = select(RepairRow.id).where(RepairRow.cluster == cluster, RepairRow.node == name)
    return exactly | (col(AuditRow.subject) == f"{cluster}/{name}") | col(AuditRow.subject).in_(theirs)


def _node_named(session: Session, name: str) -> tuple[str, str]:
    """Cluster and name of the node; of one that is declared no more, as its last repair has them."""
    try:
        node = find_node(session, name)
    except NotFound:
        cluster, _, short = name.rpartition("/")
        past = select(RepairRow.cluster, RepairRow.node).where(RepairRow.node == short)
        past = past.where(RepairRow.cluster == cluster) if cluster else past
        return session.exec(past.order_by(col(RepairRow.id).desc()).limit(1)).first() or ("", "")
    return node.cluster, node.name


def audit_verdict(session: Session) -> AuditVerdict:
    """Walk the whole audit chain."""
    return AuditVerdict(**asdict(audit.verify(session)))


def _nodes_by_state(session: Session) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    found = select(NodeRow.cluster, NodeRow.state, func.count()).group_by(col(NodeRow.cluster), col(NodeRow.state))
    for cluster, state, count in session.exec(found).all():
        counts[cluster][state] = count
    return counts
