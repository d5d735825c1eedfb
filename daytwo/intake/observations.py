"""Observations become rows, once each, and change findings. The transaction that everything else is built on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from daytwo.domain.errors import NotFound
from daytwo.domain.vocabulary import FindingStatus
from daytwo.faults.catalogue import UNKNOWN_CODE, UnknownFault, catalogue
from daytwo.intake.findings import Effect, NodeFindings
from daytwo.store import locks
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow, ObservationRow
from daytwo.wire import node_entity

Guard = Callable[[Session], None]
"""Raises inside a write when whoever writes no longer may: `lambda session: guarded(session, lease)`."""

NodeKey = tuple[str, str]
"""Cluster and name."""

Query = SelectOfScalar[ObservationRow]

CLUSTER_WIDE: Final = ""
"""The node of an observation that is about a whole cluster."""
NODE: Final = node_entity()


@dataclass(frozen=True, slots=True)
class Observation:
    """Something seen once. Times are in the server's time: a node's clock is corrected before it gets here.

    A kernel record has `boot_id` and `kernel_sequence`, a record of an agent `stream` and `sequence`; what the control
    plane saw itself has neither.
    """

    cluster: str
    node: str
    fault: str
    entity: str
    status: FindingStatus
    first_seen: datetime
    last_seen: datetime
    source: str
    count: int = 1
    boot_id: str | None = None
    kernel_sequence: int | None = None
    stream: int | None = None
    sequence: int | None = None
    evidence: tuple[str, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)


def observe(
    store: Store, observations: Sequence[Observation], *, now: datetime, guard: Guard | None = None
) -> tuple[Effect, ...]:
    """Record observations in one transaction and return what each did, in their order.

    A duplicate changes nothing. Raises `NotFound` for a node that is not declared; then nothing is recorded.
    """
    with store.write() as session:
        if guard:
            guard(session)
        return observe_in(session, observations, now=now)


def observe_in(session: Session, observations: Sequence[Observation], *, now: datetime) -> tuple[Effect, ...]:
    """Like `observe`, inside the caller's write transaction. A node that anything new was seen of is due once more."""
    effects: dict[int, Effect] = {}
    locked = _lock(session, observations)
    numbered = sorted(enumerate(observations), key=lambda pair: (pair[1].cluster, pair[1].node, pair[0]))
    for (cluster, node), group in groupby(numbered, key=lambda pair: (pair[1].cluster, pair[1].node)):
        places, of_node = zip(*group, strict=True)
        effects.update(zip(places, _of_node(session, locked, (cluster, node), of_node, now), strict=True))
    return tuple(effects[place] for place in range(len(observations)))


def lock_node(session: Session, cluster: str, node: str) -> NodeRow:
    """Return the row of a declared node, locked until the transaction ends. Raises `NotFound`."""
    session.flush()  # the row is read again, and must not lose what was changed in it
    row = session.get(NodeRow, (cluster, node), with_for_update=True)
    if row is None:
        raise NotFound(f"node {node!r} is not declared in cluster {cluster!r}")
    return row


def _lock(session: Session, observations: Sequence[Observation]) -> dict[NodeKey, NodeRow]:
    """Lock what the observations are about before anything is read of it: clusters first, then nodes in one order."""
    locked: dict[NodeKey, NodeRow] = {}
    about = sorted({(each.cluster, each.node) for each in observations})
    for cluster, node in about:
        if node == CLUSTER_WIDE:
            locks.hold(session, locks.Lock.WHOLE_CLUSTER, cluster)
    for cluster, group in groupby(about, key=itemgetter(0)):
        names = [node for _, node in group if node != CLUSTER_WIDE]
        if len(names) > 1:
            rows = locks.lock_nodes(session, cluster, names)
            locked.update({(cluster, name): row for name, row in rows.items()})
    return locked


def _of_node(
    session: Session,
    locked: Mapping[NodeKey, NodeRow],
    key: NodeKey,
    observations: Sequence[Observation],
    now: datetime,
) -> list[Effect]:
    cluster, node = key
    row = None if node == CLUSTER_WIDE else locked.get(key) or lock_node(session, cluster, node)
    named = [_named(each) for each in observations]
    known = _known(session, named)
    faults, entities = {each.fault for each in named}, {each.entity for each in named}
    findings = NodeFindings(session, cluster, row, faults=faults, entities=entities)
    effects = []
    for each in named:
        if not known.isdisjoint(_keys(each)):
            effects.append(Effect.DUPLICATE)
            continue
        known |= _keys(each)
        effects.append(findings.apply(_insert(session, each, now)))
    if row and any(effect is not Effect.DUPLICATE for effect in effects):
        row.due += 1
    return effects


def _named(seen: Observation) -> Observation:
    """A fault that the catalogue does not know is kept as `unknown-code`, with the name it came under."""
    try:
        catalogue().get(seen.fault)
    except UnknownFault:
        return replace(seen, fault=UNKNOWN_CODE, detail={**seen.detail, "reported_as": seen.fault})
    return seen


def _keys(seen: Observation | ObservationRow) -> set[tuple[object, ...]]:
    """What makes this observation the same as another: its kernel record, and its place in the node's stream."""
    keys: set[tuple[object, ...]] = set()
    if seen.boot_id is not None and seen.kernel_sequence is not None:
        keys.add((seen.boot_id, seen.kernel_sequence, seen.fault, seen.entity))
    if seen.stream is not None and seen.sequence is not None:
        keys.add((seen.stream, seen.sequence))
    return keys


def _known(session: Session, observations: Sequence[Observation]) -> set[tuple[object, ...]]:
    """The keys of those rows that are there already; at most two questions to the store for the whole batch."""
    return {
        key
        for query in (_same_kernel_records(observations), _same_places(observations))
        if query is not None
        for row in session.exec(query)
        for key in _keys(row)
    }


def _same_kernel_records(observations: Sequence[Observation]) -> Query | None:
    records = [(each.boot_id, each.kernel_sequence) for each in observations if each.kernel_sequence is not None]
    if not records:
        return None
    boots, sequences = zip(*records, strict=True)
    query = _of_same_node(observations[0]).where(col(ObservationRow.boot_id).in_(set(boots)))
    return query.where(col(ObservationRow.kernel_sequence).in_(set(sequences)))


def _same_places(observations: Sequence[Observation]) -> Query | None:
    places = [(each.stream, each.sequence) for each in observations if each.sequence is not None]
    if not places:
        return None
    streams, sequences = zip(*places, strict=True)
    query = _of_same_node(observations[0]).where(col(ObservationRow.stream).in_(set(streams)))
    return query.where(col(ObservationRow.sequence).in_(set(sequences)))


def _of_same_node(seen: Observation) -> Query:
    return select(ObservationRow).where(ObservationRow.cluster == seen.cluster, ObservationRow.node == seen.node)


def _insert(session: Session, seen: Observation, now: datetime) -> ObservationRow:
    row = ObservationRow(
        cluster=seen.cluster,
        node=seen.node,
        fault=seen.fault,
        entity=seen.entity,
        status=seen.status,
        count=seen.count,
        source=seen.source,
        boot_id=seen.boot_id,
        kernel_sequence=seen.kernel_sequence,
        stream=seen.stream,
        sequence=seen.sequence,
        first_seen_at=min(seen.first_seen, seen.last_seen, now),
        seen_at=min(seen.last_seen, now),
        received_at=now,
        evidence=list(seen.evidence),
        detail=dict(seen.detail),
    )
    session.add(row)
    session.flush()
    return row
