"""Finds what a person named, or says that it is not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum

from sqlmodel import Session, select

from daytwo.domain.errors import BadInput, NotFound
from daytwo.domain.policy import Timing
from daytwo.faults.catalogue import UnknownFault, catalogue
from daytwo.faults.model import Fault
from daytwo.store.tables import ClusterRow, NodeRow, RepairRow


def find_node(session: Session, name: str) -> NodeRow:
    """The node called `node` or `cluster/node`. Raises `NotFound`, and `BadInput` where two clusters have that name."""
    cluster, _, short = name.rpartition("/")
    found = select(NodeRow).where(NodeRow.name == short)
    rows = session.exec(found.where(NodeRow.cluster == cluster) if cluster else found).all()
    if not rows:
        raise NotFound(f"there is no node {name!r}")
    rows = [row for row in rows if row.left_at is None] or rows
    if len(rows) > 1:
        raise BadInput(f"node: found {name!r}, which is in several clusters; allowed {', '.join(map(node_key, rows))}")
    return rows[0]


def find_repair(session: Session, repair_id: str) -> RepairRow:
    """The row of a repair. Raises `NotFound`."""
    row = session.get(RepairRow, repair_id)
    if row is None:
        raise NotFound(f"there is no repair {repair_id!r}")
    return row


def find_cluster(session: Session, name: str) -> ClusterRow:
    """The row of a declared cluster. Raises `NotFound`."""
    row = session.get(ClusterRow, name)
    if row is None:
        raise NotFound(f"there is no cluster {name!r}")
    return row


def silent_after(cluster: ClusterRow | None) -> float:
    """After how many seconds unheard an agent of the cluster counts as silent."""
    policy = cluster.definition.get("policy", {}) if cluster else {}
    return Timing.model_validate(policy.get("timing", {})).silent_after_seconds


def find_fault(fault_id: str) -> Fault:
    """The entry of the catalogue. Raises `NotFound`, with what was probably meant."""
    try:
        return catalogue().get(fault_id)
    except UnknownFault as unknown:
        near = get_close_matches(fault_id, [fault.id for fault in catalogue().all()], n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise NotFound(f"there is no fault {fault_id!r}{meant}") from unknown


def known_words(states: tuple[str, ...], allowed: Iterable[StrEnum | str]) -> tuple[str, ...]:
    """Return `states` if all are allowed, else raise `BadInput`: a misspelt filter must not look like an empty list."""
    words = [str(word) for word in allowed]
    for state in states:
        if state not in words:
            raise BadInput(f"state: found {state!r}; allowed is {', '.join(words)}")
    return states


def node_key(row: NodeRow) -> str:
    """`cluster/node`: how a node is named where its cluster matters."""
    return f"{row.cluster}/{row.name}"
