"""A cluster goes when nothing of it is under way or marked; what was done in it stays on record."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmodel import select

from daytwo.domain.errors import BadInput, NotFound, Refused
from daytwo.domain.vocabulary import Channel
from daytwo.gateway.identity import identify, issue_token
from daytwo.service.decisions import Identity
from daytwo.service.removing import RemovalRequest, remove
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, ClusterRow, FreezeRow, IncidentRow, IntentRow, NodeRow, RepairRow
from tests.builders import NOW
from tests.rows import REPAIR, a_cluster, a_finding_row, a_node, a_repair, keep

LEA = Identity(actor="cli:lea", channel=Channel.CLI, verified=True)
ALICE = Identity(actor="cli:alice", channel=Channel.CLI, verified=True)
EAST = RemovalRequest(cluster="east", reason="moved to the other hall")
ENDED = {"open_key": None, "state": "succeeded", "closed_at": NOW}
FREE = {"states": ["IDLE"], "mark_repair_id": None}
MARKED = {"states": ["IDLE", "DRAIN"], "mark_repair_id": REPAIR}


@pytest.fixture
def quiet(store: Store) -> Store:
    """A cluster of one node that is free, with a repair that has ended."""
    keep(store, a_cluster(), a_node(facts=FREE), a_repair(**ENDED), a_finding_row())
    return store


def change(store: Store, table: Any, **fields: Any) -> None:
    with store.write() as session:
        row = session.exec(select(table)).one()
        for name, value in fields.items():
            setattr(row, name, value)
        session.add(row)


def count(store: Store, table: Any) -> int:
    with store.read() as session:
        return len(session.exec(select(table)).all())


def test_its_nodes_go_and_its_repairs_stay(quiet: Store) -> None:
    assert remove(quiet, LEA, EAST, owner="cli:root", now=NOW).nodes == 1
    assert [count(quiet, table) for table in (ClusterRow, NodeRow, RepairRow)] == [0, 0, 1]


def test_its_agents_are_not_heard_any_more(quiet: Store) -> None:
    token = issue_token(quiet, "east", "gpu-07", now=NOW)
    remove(quiet, LEA, EAST, owner="cli:root", now=NOW)
    assert identify(quiet, f"Bearer {token}") is None


def test_who_did_it_and_why_is_on_record_and_its_freezes_end(quiet: Store) -> None:
    keep(
        quiet, *(FreezeRow(scope=scope, reason="r", actor="cli:lea", at=NOW) for scope in ("east", "east/gpu-07", "*"))
    )
    remove(quiet, LEA, EAST, owner="cli:root", now=NOW)
    with quiet.read() as session:
        row = session.exec(select(AuditRow)).one()
        assert [each.scope for each in session.exec(select(FreezeRow)) if each.thawed_at is None] == ["*"]
    assert (row.actor, row.act, row.data["reason"]) == ("cli:lea", "remove-cluster", EAST.reason)


def test_an_open_repair_is_in_the_way(quiet: Store) -> None:
    change(quiet, RepairRow, open_key="east/gpu-07", state="proposed")
    with pytest.raises(Refused, match=f"{REPAIR} is open; end them: daytwo repairs list --cluster east"):
        remove(quiet, LEA, EAST, owner="cli:root", now=NOW)


def test_an_unresolved_act_is_in_the_way(quiet: Store) -> None:
    what = {"driver": "d", "kind": "drain", "target": "gpu-07", "created_at": NOW, "updated_at": NOW}
    act = IntentRow(id="i", repair_id=REPAIR, cluster="east", node="gpu-07", open_node="east/gpu-07", **what)
    keep(quiet, act)
    with pytest.raises(Refused, match="gpu-07 is acted on"):
        remove(quiet, LEA, EAST, owner="cli:root", now=NOW)


def test_an_incident_that_goes_on_is_in_the_way(quiet: Store) -> None:
    times = {"first_at": NOW, "last_at": NOW, "opened_at": NOW}
    keep(quiet, IncidentRow(id="i-1", cluster="east", fault_class="board", open_key="east/board", **times))
    with pytest.raises(Refused, match="i-1 is an incident that goes on"):
        remove(quiet, LEA, EAST, owner="cli:root", now=NOW)


def test_our_marks_are_in_the_way(quiet: Store) -> None:
    change(quiet, NodeRow, facts=MARKED)
    with pytest.raises(Refused, match=rf"gpu-07 \({REPAIR}\) is marked by us"):
        remove(quiet, LEA, EAST, owner="cli:root", now=NOW)


def test_marks_that_a_repair_has_left_to_others_are_not(quiet: Store) -> None:
    change(quiet, NodeRow, facts=MARKED)
    change(quiet, RepairRow, state="handed-over")
    assert remove(quiet, LEA, EAST, owner="cli:root", now=NOW).nodes == 1


def test_a_scheduler_that_says_nothing_is_not_one_without_marks(quiet: Store) -> None:
    change(quiet, NodeRow, facts=None)
    with pytest.raises(Refused, match="gpu-07 is not read by its scheduler"):
        remove(quiet, LEA, EAST, owner="cli:root", now=NOW)
    gone = EAST.model_copy(update={"scheduler_gone": True})
    assert remove(quiet, LEA, gone, owner="cli:root", now=NOW).nodes == 1


@pytest.mark.parametrize(
    ("asker", "request_", "error"),
    [
        (ALICE, EAST, Refused),
        (LEA, RemovalRequest(cluster="east"), BadInput),
        (LEA, RemovalRequest(cluster="west", reason="r"), NotFound),
    ],
    ids=["no lead", "no reason", "no such cluster"],
)
def test_not_everybody_and_not_without_a_reason(
    quiet: Store, asker: Identity, request_: RemovalRequest, error: type[Exception]
) -> None:
    with pytest.raises(error):
        remove(quiet, asker, request_, owner="cli:root", now=NOW)
    assert count(quiet, ClusterRow) == 1
