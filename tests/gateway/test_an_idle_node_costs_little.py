"""A pulse with nothing new takes a short way; whatever is new takes the long one, and is not missed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event
from sqlmodel import select

from daytwo import node_requests
from daytwo.gateway.identity import issue_token
from daytwo.node_requests import NodeRequest
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeTokenRow
from tests.gateway.conftest import NODE, Agent, Records, Time
from tests.rows import a_repair, keep

IDLE = {"checks": None, "inventory": None}


@pytest.fixture
def known(agent: Agent, now: Time) -> Agent:
    """An agent that has said what it is."""
    agent.pulse()
    now.pass_by(60)
    return agent


def statements(store: Store, known: Agent, **said: Any) -> int:
    """How many statements a pulse is to the store."""
    count: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        count.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    assert known.pulse(**IDLE | said).status_code == 200
    event.remove(store.engine, "before_cursor_execute", note)
    return sum(not statement.startswith("BEGIN") for statement in count)


def test_an_idle_pulse_is_one_question_and_one_update(known: Agent, declared: Store) -> None:
    assert statements(declared, known) == 2


def test_an_idle_pulse_is_heard(known: Agent, records: Records, now: Time) -> None:
    answer = known.pulse(**IDLE).json()
    node = records.node()
    assert (node.last_heard_at, node.identity_at) == (now(), now())
    assert answer == {"requests": [], "withdrawn": [], "come_back_seconds": 60.0, "send_full": False}


@pytest.mark.parametrize(
    "said",
    [{"boot_id": "boot-2"}, {"version": "9.9"}, {"digest": "d2"}, {"identity": {"serial": "S2"}}, {"stream": 7}],
    ids=lambda said: next(iter(said)),
)
def test_what_is_not_as_before_goes_the_long_way(known: Agent, declared: Store, said: dict[str, Any]) -> None:
    assert statements(declared, known, **said) > 2


def test_another_machine_under_the_name_is_written_down(known: Agent, records: Records) -> None:
    known.pulse(**IDLE, identity={"serial": "S2"})
    assert records.node().identity == {"serial": "S2"}


def test_a_question_is_handed_over(known: Agent, declared: Store, now: Time) -> None:
    node_requests.ask(declared, NodeRequest("q1", "east", NODE, "probe-gpus", ttl_seconds=90), now=now())
    assert [asked["id"] for asked in known.pulse(**IDLE).json()["requests"]] == ["q1"]


def test_a_question_that_nobody_waits_for_any_more_is_taken_back(known: Agent, declared: Store, now: Time) -> None:
    node_requests.ask(declared, NodeRequest("q1", "east", NODE, "probe-gpus", ttl_seconds=90), now=now())
    known.pulse(**IDLE)
    node_requests.withdraw(declared, "q1", now=now())
    assert known.pulse(**IDLE).json()["withdrawn"] == ["q1"]


@pytest.mark.parametrize("what", ["repair", "finding"])
def test_a_node_in_trouble_comes_back_sooner(known: Agent, declared: Store, now: Time, what: str) -> None:
    times = dict.fromkeys(("first_seen", "last_seen", "last_received"), now())
    rows = {
        "repair": a_repair(node=NODE, open_key=f"east/{NODE}"),
        "finding": FindingRow(cluster="east", node=NODE, fault="xid-79", entity="GPU-1", status="firing", **times),
    }
    keep(declared, rows[what])
    assert known.pulse(**IDLE).json()["come_back_seconds"] == 10


def test_the_token_before_is_retired(known: Agent, declared: Store, now: Time) -> None:
    now.pass_by(1)
    known.token = issue_token(declared, "east", NODE, now=now())
    known.pulse(**IDLE)
    with declared.read() as session:
        tokens = session.exec(select(NodeTokenRow)).all()
    assert sorted(row.revoked_at is None for row in tokens) == [False, True]


def test_other_nodes_trouble_is_not_this_nodes(known: Agent, declared: Store) -> None:
    keep(declared, a_repair(node="gpu-02", open_key="east/gpu-02"))
    assert statements(declared, known) == 2


def test_a_repair_that_has_ended_is_no_trouble(known: Agent, declared: Store, now: Time) -> None:
    keep(declared, a_repair(node=NODE, open_key=None, closed_at=now() - timedelta(hours=1)))
    assert statements(declared, known) == 2
