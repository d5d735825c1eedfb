"""Nodes and their findings as people read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, tuple_
from sqlmodel import Session, col, select

from daytwo.domain.vocabulary import Finding, FindingStatus, NodeState
from daytwo.service.models.nodes import NodeDetail, NodeSummary, NodeTransition
from daytwo.service.models.paging import Page
from daytwo.service.models.repairs import RepairSummary
from daytwo.service.reads.lookup import find_cluster, find_fault, find_node, known_words, node_key, silent_after
from daytwo.service.reads.paging import MOST, Filter, page, row_number, view
from daytwo.service.reads.pauses import pauses_of
from daytwo.service.reads.repairs import summary
from daytwo.store.tables import ClusterRow, FindingRow, NodeRow, NodeTransitionRow, RepairRow

RECENT = 50
"""How many past findings, transitions and repairs a node is shown with."""


def nodes(session: Session, wanted: Filter, now: datetime) -> Page[NodeSummary]:
    """Nodes in the order of cluster and name."""
    found = select(NodeRow).order_by(col(NodeRow.cluster), col(NodeRow.name)).limit(wanted.limit + 1)
    if wanted.cluster:
        found = found.where(NodeRow.cluster == find_cluster(session, wanted.cluster).name)
    if wanted.states:
        found = found.where(col(NodeRow.state).in_(known_words(wanted.states, NodeState)))
    if wanted.after:
        cluster, _, name = wanted.after.partition("/")
        found = found.where(tuple_(col(NodeRow.cluster), col(NodeRow.name)) > tuple_(cluster, name))
    rows = session.exec(found).all()
    going_on = _going_on(session, rows, now)

    def shown(row: NodeRow) -> NodeSummary:
        return view(NodeSummary, row, **going_on[node_key(row)])

    return page(rows, wanted.limit, view=shown, key=node_key)


def node(session: Session, name: str, now: datetime) -> NodeDetail:
    """One node with its findings (firing first), transitions and repairs, newest first. Raises as `find_node`."""
    row = find_node(session, name)
    shown = _recent_findings(session, row)
    return view(
        NodeDetail,
        row,
        **_going_on(session, [row], now)[node_key(row)],
        silent_after_seconds=silent_after(session.get(ClusterRow, row.cluster)),
        findings=tuple(finding_view(each) for each in shown),
        transitions=_transitions(session, row),
        repairs=_past_repairs(session, row),
    )


def findings(session: Session, wanted: Filter) -> Page[Finding]:
    """Findings, newest first; `states` are `firing` and `cleared`. Raises as `find_node` and `find_fault`."""
    found = select(FindingRow).order_by(col(FindingRow.id).desc()).limit(wanted.limit + 1)
    states = (FindingStatus.FIRING.value,) if wanted.active_only else wanted.states
    conditions: list[ColumnElement[bool]] = []
    if states:
        conditions.append(col(FindingRow.status).in_(known_words(states, FindingStatus)))
    if wanted.cluster:
        conditions.append(col(FindingRow.cluster) == find_cluster(session, wanted.cluster).name)
    if wanted.fault:
        conditions.append(col(FindingRow.fault) == find_fault(wanted.fault).id)
    if wanted.node:
        conditions += _of_node(find_node(session, wanted.node))
    if wanted.after:
        conditions.append(col(FindingRow.id) < row_number(wanted.after))
    rows = session.exec(found.where(*conditions)).all()
    return page(rows, wanted.limit, view=finding_view, key=lambda row: str(row.id))


def finding_view(row: FindingRow) -> Finding:
    """A finding as the domain and people see it."""
    return view(Finding, row)


def _going_on(session: Session, rows: Sequence[NodeRow], now: datetime) -> dict[str, dict[str, Any]]:
    """What nodes have besides their rows, by `cluster/node`."""
    firing, repairs, pauses = _firing(session, rows), _open_repairs(session, rows), pauses_of(session, rows, now)
    return {
        key: {
            "firing": tuple(firing[key]),
            "repair": repairs.get(key),
            "snoozes": pauses.snoozes.get(key, ()),
            "quiet": pauses.quiet.get(key),
        }
        for key in map(node_key, rows)
    }


def _of_node(row: NodeRow) -> list[ColumnElement[bool]]:
    return [col(FindingRow.cluster) == row.cluster, col(FindingRow.node) == row.name]


def _firing(session: Session, rows: Sequence[NodeRow]) -> dict[str, list[str]]:
    found = select(FindingRow).where(
        FindingRow.status == FindingStatus.FIRING.value, col(FindingRow.node).in_([row.name for row in rows])
    )
    by_node: dict[str, list[str]] = defaultdict(list)
    for each in session.exec(found.order_by(col(FindingRow.first_seen))).all():
        known = by_node[f"{each.cluster}/{each.node}"]
        if each.fault not in known:
            known.append(each.fault)
    return by_node


def _open_repairs(session: Session, rows: Iterable[NodeRow]) -> dict[str, str]:
    found = select(RepairRow.open_key, RepairRow.id).where(col(RepairRow.open_key).in_([node_key(row) for row in rows]))
    return {key: repair_id for key, repair_id in session.exec(found).all() if key}


def _recent_findings(session: Session, row: NodeRow) -> list[FindingRow]:
    firing = col(FindingRow.status) == FindingStatus.FIRING.value
    newest = col(FindingRow.last_seen).desc()
    found = select(FindingRow).where(*_of_node(row)).order_by(newest)
    first = session.exec(found.where(firing).limit(MOST)).all()
    return [*first, *session.exec(found.where(~firing).limit(RECENT)).all()]


def _transitions(session: Session, row: NodeRow) -> tuple[NodeTransition, ...]:
    found = select(NodeTransitionRow).where(
        NodeTransitionRow.cluster == row.cluster, NodeTransitionRow.node == row.name
    )
    rows = session.exec(found.order_by(col(NodeTransitionRow.id).desc()).limit(RECENT)).all()
    return tuple(view(NodeTransition, each) for each in rows)


def _past_repairs(session: Session, row: NodeRow) -> tuple[RepairSummary, ...]:
    found = select(RepairRow).where(RepairRow.cluster == row.cluster, RepairRow.node == row.name)
    return tuple(summary(each) for each in session.exec(found.order_by(col(RepairRow.id).desc()).limit(RECENT)).all())
