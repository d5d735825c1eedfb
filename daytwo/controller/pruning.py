"""Deletes what nobody needs any more: old observations, changes of state, questions and evidence, removed clusters.

A loop of the controller. Batches are small, so that nobody waits for one. Repairs, decisions, acts and the audit are
never deleted, nor what an open repair, a firing finding or the running boot of a node may still be asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement
from sqlmodel import col, delete, func, select
from sqlmodel.sql.expression import SelectOfScalar

from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock, every
from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.policy import Retention
from daytwo.domain.vocabulary import FindingStatus
from daytwo.intents import Guard
from daytwo.store.engine import Store
from daytwo.store.tables import (
    ClusterRow,
    EvidenceRow,
    FindingRow,
    NodeRequestRow,
    NodeRow,
    NodeTransitionRow,
    ObservationRow,
    RepairRow,
)

EVERY: Final = timedelta(hours=1)
LOOK_SECONDS: Final = 20.0
"""Between two looks at the clock: a loop that ends no step for long counts as stuck."""
ROUND: Final = 100
"""Batches of one step; what is left goes with the next look."""
BATCH: Final = 500
"""Rows of one transaction: some milliseconds, in which an agent's findings wait."""
PAUSE_SECONDS: Final = 0.05
"""Between two batches, so that whoever waits comes first."""

Query = SelectOfScalar[Any]


async def watch_age(store: Store, lease: Lease, *, clock: Clock) -> None:
    """Prune each hour, for ever. Raises `LeaseLost`."""
    pruning = Pruning(store, lease.guard, clock.now)
    due: datetime | None = None

    async def look() -> None:
        nonlocal due
        if (due is None or clock.now() >= due) and await pruning.step() < ROUND * BATCH:
            due = clock.now() + EVERY

    await every(LOOK_SECONDS, look, clock=clock, lease=lease)


class Pruning:
    """One round a call."""

    def __init__(
        self,
        store: Store,
        guard: Guard,
        now: Callable[[], datetime],
        *,
        batch: int = BATCH,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._store = store
        self._guard = guard
        self._now = now
        self._batch = batch
        self._pause = pause

    async def step(self) -> int:
        """Delete what is too old, batch by batch, at most `ROUND` of them; returns how many rows went."""
        gone = 0
        for table, query in await asyncio.to_thread(self._wanted):
            while gone < ROUND * self._batch and (count := await asyncio.to_thread(self._delete, table, query)):
                gone += count
                await asyncio.sleep(self._pause)
        return gone

    def _wanted(self) -> list[tuple[type[Any], Query]]:
        with self._store.read() as session:
            definitions = session.exec(select(ClusterRow.name, ClusterRow.definition)).all()
        now = self._now()
        wanted: list[tuple[type[Any], Query]] = []
        for name, definition in definitions:
            keep = ClusterDefinition.model_validate(definition).policy.retention
            wanted += _of_cluster(name, keep, now)
        wanted.append((EvidenceRow, select(EvidenceRow.id).where(col(EvidenceRow.expires_at) <= now)))
        return wanted + _of_removed_clusters([name for name, _ in definitions])

    def _delete(self, table: type[Any], query: Query) -> int:
        with self._store.write() as session:
            self._guard(session)
            ids = session.exec(query.limit(self._batch)).all()
            if ids:
                session.exec(delete(table).where(table.id.in_(ids)))
            return len(ids)


def _of_cluster(name: str, keep: Retention, now: datetime) -> list[tuple[type[Any], Query]]:
    observed, asked = now - timedelta(days=keep.observations_days), now - timedelta(days=keep.requests_days)
    moved = (NodeTransitionRow.cluster == name, col(NodeTransitionRow.at) < observed)
    return [
        (ObservationRow, _old_observations(name, observed)),
        (NodeTransitionRow, select(NodeTransitionRow.id).where(*moved)),
        (NodeRequestRow, _old_requests(name, asked)),
    ]


def _old_observations(cluster: str, before: datetime) -> Query:
    mine = (ObservationRow.cluster == cluster, col(ObservationRow.received_at) < before)
    return (
        select(ObservationRow.id)
        .where(*mine, _is_not_newest(), ~_of_running_boot(), ~_of_open_repair(), ~_of_firing_finding())
        .order_by(col(ObservationRow.id))
    )


def _is_not_newest() -> ColumnElement[bool]:
    # SQLite gives the id of a deleted newest row away again: what comes then would count as judged already.
    return col(ObservationRow.id) < select(func.max(ObservationRow.id)).scalar_subquery()


def _of_running_boot() -> ColumnElement[bool]:
    """An agent that has lost its place reads this boot's kernel log again: its records must still be known."""
    of_log = col(ObservationRow.kernel_sequence).is_not(None)
    node = (NodeRow.cluster == ObservationRow.cluster, NodeRow.name == ObservationRow.node)
    return select(NodeRow.name).where(*node, of_log, NodeRow.boot_id == ObservationRow.boot_id).exists()


def _of_open_repair() -> ColumnElement[bool]:
    node = (RepairRow.cluster == ObservationRow.cluster, RepairRow.node == ObservationRow.node)
    return select(RepairRow.id).where(*node, col(RepairRow.open_key).is_not(None)).exists()


def _of_firing_finding() -> ColumnElement[bool]:
    same: Sequence[Any] = [
        getattr(FindingRow, name) == getattr(ObservationRow, name) for name in ("cluster", "node", "fault", "entity")
    ]
    return select(FindingRow.id).where(*same, FindingRow.status == FindingStatus.FIRING).exists()


def _old_requests(cluster: str, before: datetime) -> Query:
    mine = (NodeRequestRow.cluster == cluster, col(NodeRequestRow.ended_at) < before)
    is_open = (RepairRow.id == NodeRequestRow.repair_id, col(RepairRow.open_key).is_not(None))
    return select(NodeRequestRow.id).where(*mine, ~select(RepairRow.id).where(*is_open).exists())


def _of_removed_clusters(declared: Sequence[str]) -> list[tuple[type[Any], Query]]:
    seen = select(ObservationRow.id).where(col(ObservationRow.cluster).not_in(declared), _is_not_newest())
    moved = select(NodeTransitionRow.id).where(col(NodeTransitionRow.cluster).not_in(declared))
    return [(ObservationRow, seen), (NodeTransitionRow, moved)]
