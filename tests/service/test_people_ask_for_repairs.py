"""A repair that a person starts: who may, when not, and what is written."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmodel import select

from daytwo.domain.errors import BadInput, DaytwoError, NotFound, Refused, Stale
from daytwo.domain.vocabulary import Action, Channel
from daytwo.service.asking import RepairRequest, ask
from daytwo.service.decisions import Identity
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, NodeRow, RepairRow
from tests.builders import NOW
from tests.rows import a_cluster, a_node, keep

ALICE = Identity(actor="cli:alice", channel=Channel.CLI, verified=True)
EVE = Identity(actor="cli:eve", channel=Channel.CLI, verified=True)


def wish(**fields: Any) -> RepairRequest:
    return RepairRequest(**{"node": "gpu-08", "action": Action.REBOOT, "reason": "kernel upgrade"} | fields)


@pytest.fixture
def idle(fleet: Store) -> Store:
    keep(fleet, a_node("gpu-08"))
    return fleet


def test_a_repair_is_opened_in_the_name_of_who_asked(idle: Store) -> None:
    opened = ask(idle, ALICE, wish(), NOW)
    with idle.read() as session:
        row = session.get_one(RepairRow, opened.id)
    assert (row.state, row.opened_by, row.action, row.why) == ("opening", "cli:alice", "reboot", "kernel upgrade")


def test_its_node_is_due_and_it_is_in_the_audit(idle: Store) -> None:
    ask(idle, ALICE, wish(), NOW)
    with idle.read() as session:
        assert session.get_one(NodeRow, ("east", "gpu-08")).due == 1
        assert session.exec(select(AuditRow.act)).all() == ["open-repair", "ask-repair"]


@pytest.mark.parametrize(
    ("asker", "fields", "error", "says"),
    [
        (EVE, {}, Refused, "cli:eve is nobody"),
        (ALICE, {"reason": " "}, BadInput, "reason: found nothing"),
        (ALICE, {"node": "gpu-99"}, NotFound, "gpu-99"),
        (ALICE, {"node": "gpu-07"}, Stale, "is open on gpu-07: proposed"),
    ],
)
def test_a_wish_that_cannot_be_followed_opens_nothing(
    idle: Store, asker: Identity, fields: dict[str, Any], error: type[DaytwoError], says: str
) -> None:
    with pytest.raises(error, match=says):
        ask(idle, asker, wish(**fields), NOW)
    with idle.read() as session:
        assert len(session.exec(select(RepairRow)).all()) == 1


def test_a_cluster_that_is_not_this_one_has_its_own_people(idle: Store) -> None:
    keep(idle, a_cluster("west", definition=a_cluster("west").definition | {"policy": {}}), a_node(cluster="west"))
    with pytest.raises(Refused):
        ask(idle, ALICE, wish(node="west/gpu-07"), NOW)
