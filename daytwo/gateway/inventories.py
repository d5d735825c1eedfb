"""Keeps the last inventory that was whole: in a pulse during a fault the lost GPU may be missing. Part of the pulse."""

from __future__ import annotations

from typing import Any

from sqlmodel import Session, col, select

from daytwo.domain.machines import KNOWN_GPUS, known_gpus, uuids
from daytwo.domain.vocabulary import FindingStatus
from daytwo.faults.signals import OFF_BUS_SIGNS
from daytwo.store.tables import FindingRow, NodeRow, RepairRow


def last_whole(session: Session, node: NodeRow, now: dict[str, Any]) -> dict[str, list[str]]:
    """What to keep beside the inventory `now`; nothing where it is whole itself. Call it before the pulse is kept."""
    known, there = known_gpus(node.inventory), uuids(now)
    if not known:
        whole = _is_first_whole(session, node, there)
    elif set(known) <= set(there):
        whole = True
    else:
        # As many, and other ones: a part was swapped. While a repair waits for the old ones, its tests say so.
        whole = len(there) >= (node.expected_gpus or len(known)) and not _is_repaired(session, node)
    return {} if whole else {KNOWN_GPUS: list(known)}


def _is_first_whole(session: Session, node: NodeRow, there: tuple[str, ...]) -> bool:
    """The first inventory of a node is believed, unless one of its GPUs is known to be lost, or fewer are there."""
    if node.expected_gpus is not None:
        return len(there) >= node.expected_gpus
    lost = (FindingRow.cluster == node.cluster, FindingRow.node == node.name, col(FindingRow.fault).in_(OFF_BUS_SIGNS))
    firing = select(FindingRow.id).where(*lost, FindingRow.status == FindingStatus.FIRING)
    return session.exec(firing).first() is None


def _is_repaired(session: Session, node: NodeRow) -> bool:
    mine = select(RepairRow.id).where(RepairRow.open_key == f"{node.cluster}/{node.name}")
    return session.exec(mine).first() is not None
