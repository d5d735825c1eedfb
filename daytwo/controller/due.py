"""Which nodes the reconciler looks at: by name, from the store. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Final

from sqlalchemy import String, cast, or_
from sqlmodel import Session, col, select

from daytwo.domain.vocabulary import FindingStatus, NodeState
from daytwo.repairs import OPENING
from daytwo.store.tables import FindingRow, NodeRow, RepairRow

BATCH: Final = 100
"""Nodes loaded and judged together. What changes while they are is seen by the next batch."""

NodeKey = tuple[str, str]
"""A node by its cluster and its name."""


def changed(session: Session) -> list[NodeKey]:
    """Nodes of which something was written since they were judged."""
    keys = session.exec(select(NodeRow.cluster, NodeRow.name).where(NodeRow.due > NodeRow.judged)).all()
    return [(cluster, name) for cluster, name in keys]


def worth_a_look(session: Session) -> list[NodeKey]:
    """Nodes that fire, have an open repair, are not healthy, or carry our marks."""
    firing = select(FindingRow.cluster, FindingRow.node).where(FindingRow.status == FindingStatus.FIRING)
    opened = select(RepairRow.cluster, RepairRow.node).where(col(RepairRow.open_key).is_not(None))
    marked = cast(col(NodeRow.facts), String).like('%"mark_repair_id": "%')
    other = or_(col(NodeRow.state) != NodeState.HEALTHY, marked)
    rows = [*session.exec(firing).all(), *session.exec(opened).all()]
    return [*rows, *session.exec(select(NodeRow.cluster, NodeRow.name).where(other)).all()]


def left_opening(session: Session, before: datetime) -> list[NodeKey]:
    """Nodes whose repair was opened before then, and whose workflow was not started."""
    left = (RepairRow.state == OPENING, col(RepairRow.open_key).is_not(None), RepairRow.opened_at < before)
    return [
        (cluster, node) for cluster, node in session.exec(select(RepairRow.cluster, RepairRow.node).where(*left)).all()
    ]


def batches(nodes: Sequence[NodeKey]) -> list[tuple[str, list[str]]]:
    """The same nodes by cluster, so many that they are loaded and judged together."""
    found = []
    for cluster, keys in groupby(sorted(nodes, key=itemgetter(0)), key=itemgetter(0)):
        names = [name for _, name in keys]
        found += [(cluster, names[start : start + BATCH]) for start in range(0, len(names), BATCH)]
    return found
