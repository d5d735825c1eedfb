"""A cluster definition becomes rows: the cluster, and the nodes that anything may be said of. The service calls it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlmodel import Session, select

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.errors import BadInput
from daytwo.domain.load_definition import expand_nodes
from daytwo.store import locks
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, NodeRow, RepairRow


def declare(store: Store, definition: ClusterDefinition, *, now: datetime) -> ClusterRow:
    """Store the definition and its nodes; return the cluster's row. Raises as `declare_in`."""
    with store.write() as session:
        return declare_in(session, definition, now=now)


def declare_in(session: Session, definition: ClusterDefinition, *, now: datetime) -> ClusterRow:
    """The same, in the caller's write transaction.

    A changed policy counts `policy_revision` up and makes every node due. A node that is no longer declared keeps its
    row and its history, and nothing more is done to it. Raises `BadInput` for a node that another cluster has, because
    a node's name must say which node it is, and for another kind than the cluster has: what its open repairs were told
    would no longer hold.
    """
    groups = {name: group for group in definition.groups for name in expand_nodes(group.nodes)}
    locks.hold(session, locks.Lock.DECLARATIONS)
    _refuse_others(session, definition.name, groups)
    row, policy_changed = _keep_cluster(session, definition, now)
    for node in _keep_nodes(session, definition.name, groups, now):
        node.due += policy_changed
    return row


def _refuse_others(session: Session, cluster: str, names: dict[str, NodeGroup]) -> None:
    for row in session.exec(select(NodeRow).where(NodeRow.cluster != cluster)):
        if row.name not in names:
            continue
        if row.left_at is None:
            raise BadInput(
                f"groups: found node {row.name!r}, which cluster {row.cluster!r} has; allowed is a name of its own"
            )
        if repair := session.exec(
            select(RepairRow.id).where(RepairRow.open_key == f"{row.cluster}/{row.name}")
        ).first():
            raise BadInput(f"groups: found node {row.name!r}, whose repair {repair} is open in cluster {row.cluster!r}")


def _keep_cluster(session: Session, definition: ClusterDefinition, now: datetime) -> tuple[ClusterRow, bool]:
    stored = definition.model_dump(mode="json")
    row = session.get(ClusterRow, definition.name, with_for_update=True)
    if row is None:
        row = ClusterRow(name=definition.name, kind=definition.kind, definition=stored, updated_at=now)
        session.add(row)
        return row, False
    if row.kind != definition.kind:
        raise BadInput(
            f"kind: found {definition.kind.value!r}; cluster {row.name!r} is {row.kind!r}, which cannot change: "
            "allowed is its own kind, or a cluster of another name"
        )
    changed = row.definition.get("policy") != stored["policy"]
    row.kind, row.definition, row.updated_at = definition.kind, stored, now
    row.policy_revision += changed
    return row, changed


def _keep_nodes(session: Session, cluster: str, groups: dict[str, NodeGroup], now: datetime) -> Iterator[NodeRow]:
    known = locks.lock_nodes(session, cluster)
    for name, group in groups.items():
        row = known.pop(name, None) or NodeRow(cluster=cluster, name=name, state_since=now, due=1)
        row.role, row.pool, row.domains = group.role, group.pool, list(group.domains)
        row.expected_gpus, row.left_at = group.gpus, None
        session.add(row)
        yield row
    for row in known.values():
        row.left_at = row.left_at or now
        yield row
