"""A declared cluster, and observations of one of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert
from sqlmodel import col, select, update

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import ClusterKind, FindingStatus
from daytwo.intake import Effect, Observation, declare, observe
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRow, ObservationRow

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass
class Intake:
    """Sends observations in and looks at what became of them."""

    store: Store
    cluster: str = "east"
    node: str = "gpu-01"

    def observation(self, sequence: int | None = None, **fields: Any) -> Observation:
        seen = Observation(self.cluster, self.node, "xid-79", "GPU-1", FindingStatus.FIRING, NOW, NOW, "test")
        stream = {"stream": 1, "sequence": sequence} if sequence is not None else {}
        return replace(seen, **stream | fields)

    def facts(self, *states: str, node: str = "", **fields: Any) -> NodeFacts:
        values: dict[str, Any] = {"node": node or self.node, "states": states or ("IDLE",), "at": NOW}
        return NodeFacts(**values | fields)

    def send(self, *observations: Observation, now: datetime = NOW) -> tuple[Effect, ...]:
        return observe(self.store, observations, now=now)

    def row(self) -> NodeRow:
        with self.store.read() as session:
            return session.exec(select(NodeRow).where(NodeRow.name == self.node)).one()

    def findings(self) -> list[FindingRow]:
        with self.store.read() as session:
            query = select(FindingRow).where(FindingRow.node == self.node)
            return list(session.exec(query.order_by(col(FindingRow.fault), col(FindingRow.entity))))

    def observations(self) -> int:
        with self.store.read() as session:
            return len(session.exec(select(ObservationRow.id)).all())

    def multiply_findings(self, times: int) -> None:
        """Copy the one finding to so many other entities."""
        values = self.findings()[0].model_dump(exclude={"id"})
        with self.store.write() as session:
            session.execute(insert(FindingRow), [values | {"entity": f"copy-{number}"} for number in range(times)])

    def close_repair(self, *, boot_id: str | None = None) -> None:
        """What the end of a repair does to its node's findings."""
        with self.store.write() as session:
            cleared = {"status": "cleared", "cleared_by": "r-1", "cleared_at": NOW + timedelta(seconds=1)}
            session.exec(update(FindingRow).values(**cleared, judged_up_to=FindingRow.last_observation))
            if boot_id:
                session.exec(update(NodeRow).where(col(NodeRow.name) == self.node).values(boot_id=boot_id))


@pytest.fixture
def definition() -> ClusterDefinition:
    return ClusterDefinition(name="east", kind=ClusterKind.SLURM, groups=(NodeGroup(nodes=("gpu-[01-03]",), gpus=8),))


@pytest.fixture
def intake(store: Store, definition: ClusterDefinition) -> Intake:
    declare(store, definition, now=NOW)
    return Intake(store)
