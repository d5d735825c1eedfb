"""Marks that a repair has left on its node for good: whose they are, what they mean to budgets, who may take them over.

A repair that ended as removed or handed over leaves its marks. Budgets ask for the nodes that were removed; a worker
that marks such a node for a new repair asks whose marks it takes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from sqlmodel import Session, col, select

from daytwo.domain.exchange import RepairRef
from daytwo.domain.repair_states import LEAVES_MARKS
from daytwo.domain.vocabulary import State
from daytwo.store.tables import RepairRow


def left_on(session: Session, ref: RepairRef) -> list[str]:
    """The earlier repairs of a node that have left their marks, newest first; a new one of the node takes them over.

    What came before the node's last return was lifted by it.
    """
    before = (RepairRow.cluster == ref.cluster, RepairRow.node == ref.node, RepairRow.id != ref.repair_id)
    ended = select(RepairRow.id, RepairRow.state, RepairRow.stamps).where(
        *before, col(RepairRow.closed_at).is_not(None)
    )
    newest = session.exec(ended.order_by(col(RepairRow.closed_at).desc()))
    since = takewhile(lambda row: "returned" not in row[2], newest)
    return [repair for repair, state, _ in since if state in LEAVES_MARKS]


class Removed:
    """The nodes of a cluster that were removed and still carry the marks of it.

    They are no part of their pool: they are no capacity that comes back, so waiting for them would be without end. A
    node that was handed over is: somebody works on it.
    """

    def __init__(self, session: Session, cluster: str) -> None:
        left = select(RepairRow.id, RepairRow.node, RepairRow.state)
        here = (RepairRow.cluster == cluster, col(RepairRow.state).in_(LEAVES_MARKS))
        rows = session.exec(left.where(*here).order_by(col(RepairRow.closed_at))).all()
        self._marks = {repair for repair, _, _ in rows}
        self._last = {node: state for _, node, state in rows}

    def has(self, node: str, facts: Mapping[str, Any] | None) -> bool:
        """Whether this node was removed, by what its scheduler said last."""
        return self._last.get(node) == State.REMOVED and (facts or {}).get("mark_repair_id") in self._marks
