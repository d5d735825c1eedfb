"""Old rows go in small batches; what an open repair, a firing finding or the running boot needs stays."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import Session, select

from daytwo.controller.leases import LeaseLost
from daytwo.controller.pruning import ROUND, Pruning
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import EvidenceRow, NodeRequestRow, NodeTransitionRow, ObservationRow
from tests.builders import NOW
from tests.rows import a_cluster, a_finding_row, a_node, a_repair, keep

OLD = NOW - timedelta(days=91)


def free(session: Session) -> None:
    """A guard that stops nobody."""


def an_observation(**fields: Any) -> ObservationRow:
    values = {"cluster": "east", "node": "gpu-07", "fault": "xid-79", "entity": "GPU-1", "status": "firing"}
    times = {"first_seen_at": OLD, "seen_at": OLD, "received_at": OLD}
    return ObservationRow(**values | times | {"boot_id": "boot-0"} | fields)


def a_question(ident: str = "q1", **fields: Any) -> NodeRequestRow:
    values = {"cluster": "east", "node": "gpu-07", "kind": "probe-gpus", "state": "done"}
    times = {"created_at": OLD, "deadline": OLD, "ended_at": OLD}
    return NodeRequestRow(**values | times | {"id": ident} | fields)


@pytest.fixture
def fleet(store: Store) -> Store:
    """A cluster, a node in its second boot, and an observation of now, which is the newest."""
    keep(store, a_cluster(), a_node(boot_id="boot-1"))
    return store


async def left(store: Store, *rows: Any, table: type[Any] = ObservationRow) -> int:
    """How many of these rows stay; the newest observation, which always does, is not counted."""
    keep(store, *rows)
    keep(store, an_observation(received_at=NOW, fault="xid-31"))
    await Pruning(store, free, lambda: NOW, pause=0).step()
    with store.read() as session:
        return len(session.exec(select(table)).all()) - (table is ObservationRow)


async def test_an_observation_that_nothing_needs_goes(fleet: Store) -> None:
    assert await left(fleet, an_observation()) == 0


@pytest.mark.parametrize(
    ("fields", "beside"),
    [
        ({"received_at": NOW - timedelta(days=89)}, ()),
        ({"boot_id": "boot-1", "kernel_sequence": 7}, ()),
        ({}, (a_repair(),)),
        ({}, (a_finding_row(entity="GPU-1"),)),
    ],
    ids=["young", "running boot", "open repair", "firing finding"],
)
async def test_an_observation_that_is_needed_stays(
    fleet: Store, fields: dict[str, Any], beside: tuple[Any, ...]
) -> None:
    keep(fleet, *(type(row)(**row.model_dump()) for row in beside))
    assert await left(fleet, an_observation(**fields)) == 1


async def test_an_old_reading_goes_however_long_its_boot_has_been_running(fleet: Store) -> None:
    assert await left(fleet, an_observation(boot_id="boot-1")) == 0


async def test_old_changes_of_a_nodes_state_go(fleet: Store) -> None:
    moved = {"cluster": "east", "node": "gpu-07", "from_state": "healthy", "to_state": "unknown", "why": ""}
    changes = [NodeTransitionRow(**moved, at=at) for at in (OLD, NOW)]
    assert await left(fleet, *changes, table=NodeTransitionRow) == 1


async def test_the_newest_row_stays_for_its_number_must_not_come_again(fleet: Store) -> None:
    keep(fleet, an_observation())
    await Pruning(fleet, free, lambda: NOW, pause=0).step()
    with fleet.read() as session:
        assert len(session.exec(select(ObservationRow)).all()) == 1


@pytest.mark.parametrize(
    ("fields", "stay"),
    [
        ({}, 0),
        ({"ended_at": NOW - timedelta(days=29)}, 1),
        ({"ended_at": None, "state": "open"}, 1),
        ({"repair_id": a_repair().id}, 1),
        ({"repair_id": "r-that-has-ended"}, 0),
    ],
    ids=["answered", "young", "not answered", "open repair", "ended repair"],
)
async def test_a_question_stays_while_it_is_young_or_its_repair_is_open(
    fleet: Store, fields: dict[str, Any], stay: int
) -> None:
    keep(fleet, a_repair())
    assert await left(fleet, a_question(**fields), table=NodeRequestRow) == stay


async def test_what_is_left_of_a_removed_cluster_goes_at_once(fleet: Store) -> None:
    moved = NodeTransitionRow(cluster="west", node="w", from_state="a", to_state="b", at=NOW)
    keep(fleet, moved)
    assert await left(fleet, an_observation(cluster="west", received_at=NOW)) == 0
    with fleet.read() as session:
        assert session.exec(select(NodeTransitionRow)).all() == []


async def test_a_round_ends_although_there_is_more(fleet: Store) -> None:
    keep(fleet, *(an_observation(entity=f"GPU-{number}") for number in range(ROUND + 20)))
    assert await Pruning(fleet, free, lambda: NOW, batch=1, pause=0).step() == ROUND


async def test_the_audit_and_its_chain_are_not_touched(fleet: Store) -> None:
    with fleet.write() as session:
        audit.append(session, "cli:alice", "approve", "r-1", now=OLD)
    await left(fleet, an_observation())
    with fleet.read() as session:
        assert audit.verify(session).count == 1


async def test_a_controller_that_has_lost_its_lease_deletes_nothing(fleet: Store) -> None:
    def lost(_session: object) -> None:
        raise LeaseLost("somebody else prunes")

    keep(fleet, an_observation(), an_observation(received_at=NOW, fault="xid-31"))
    with pytest.raises(LeaseLost):
        await Pruning(fleet, lost, lambda: NOW).step()
    with fleet.read() as session:
        assert len(session.exec(select(ObservationRow)).all()) == 2


@pytest.mark.parametrize(("ends", "stay"), [(NOW, 0), (NOW + timedelta(seconds=1), 1)])
async def test_evidence_goes_when_its_time_is_over(fleet: Store, ends: datetime, stay: int) -> None:
    kept = EvidenceRow(id="e1", repair_id="r-1", cluster="gone", node="gpu-07", at=OLD, expires_at=ends, data=b"tar")
    assert await left(fleet, kept, table=EvidenceRow) == stay
