"""A pulse: what the node is, when it is news, what it is asked and how soon it comes back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo import node_requests
from daytwo.domain.vocabulary import FindingStatus
from daytwo.gateway.app import Gateway
from daytwo.intake import Observation, observe
from daytwo.node_requests import NodeRequest
from daytwo.store.engine import Store
from daytwo.store.tables import RepairRow

GPUS = {"gpus": [{"index": 0, "uuid": "GPU-1", "serial": None, "pci": "0000:18:00", "name": "H200"}], "driver": "595"}
KEPT = GPUS | {"known_gpus": []}
"""Of the eight that are declared one is there: the node has not been seen whole."""


def test_what_a_node_is_is_kept(agent: Any, records: Any) -> None:
    agent.pulse(inventory=GPUS)
    node = records.node()
    assert (node.boot_id, node.agent_version, node.inventory) == ("boot-1", "0.1.0", KEPT)
    assert (node.identity["system_uuid"], node.checks) == ("4c4c4544", {"kernel-log": "ok"})


def test_what_is_left_out_stays_known(agent: Any, records: Any) -> None:
    agent.pulse(inventory=GPUS)
    agent.pulse(inventory=None, identity={}, checks=None)
    node = records.node()
    assert (node.inventory, node.identity["serial"], node.checks) == (KEPT, "S1", {"kernel-log": "ok"})


@pytest.mark.parametrize(("said", "kept"), [({"kernel_log": "journal"}, "journal"), ({}, None)])
def test_which_kernel_log_is_read_is_kept_where_the_agent_says_it(
    agent: Any, records: Any, said: dict[str, str], kept: str | None
) -> None:
    agent.pulse(**said)
    assert records.node().kernel_log == kept


def test_when_a_machine_said_who_it_is_is_kept(agent: Any, records: Any, now: Any) -> None:
    agent.pulse()
    then = now()
    now.pass_by(60)
    agent.pulse(identity={})
    assert (records.node().identity_at, records.node().last_heard_at) == (then, now())


def test_an_unknown_digest_asks_for_everything(agent: Any) -> None:
    assert agent.pulse(checks=None).json()["send_full"] is True
    assert agent.pulse().json()["send_full"] is False
    assert agent.pulse(checks=None).json()["send_full"] is False
    assert agent.pulse(checks=None, digest="d2").json()["send_full"] is True


@pytest.mark.parametrize(
    ("said", "is_news"),
    [({}, False), ({"boot_id": "boot-2"}, True), ({"checks": {"kernel-log": "firing"}, "digest": "d2"}, True)],
)
def test_only_news_makes_a_node_due(agent: Any, records: Any, said: dict[str, Any], is_news: bool) -> None:
    agent.pulse()
    before = records.node().due
    agent.pulse(**said)
    assert (records.node().due > before) is is_news


def test_the_first_pulse_is_news(agent: Any, records: Any) -> None:
    before = records.node().due
    agent.pulse()
    assert records.node().due > before


def test_a_pulse_ends_the_silence(agent: Any, records: Any, declared: Store, now: Any) -> None:
    agent.pulse()
    silent = Observation("east", "gpu-01", "agent-silent", "node", FindingStatus.FIRING, now(), now(), "silence")
    observe(declared, [silent], now=now())
    before = records.node().due
    agent.pulse()
    assert [row.status for row in records.findings()] == ["cleared"]
    assert records.node().due > before


@pytest.mark.parametrize(
    ("state", "seconds"),
    [("opening", 10), ("proposed", 10), ("waiting", 10), ("draining", 5), ("verifying", 5), ("needs-help", 10)],
)
def test_a_node_under_repair_comes_back_sooner(agent: Any, declared: Store, now: Any, state: str, seconds: int) -> None:
    with declared.write() as session:
        row = {"id": "r-1", "cluster": "east", "node": "gpu-01", "open_key": "east/gpu-01", "state": state}
        session.add(RepairRow(**row, state_since=now(), opened_at=now()))
    assert agent.pulse().json()["come_back_seconds"] == seconds


def test_a_lab_is_never_slower_than_its_own_pulse(agent: Any, gateway: Gateway) -> None:
    gateway.pulse_seconds = 0.5
    agent.findings(agent.record())
    assert agent.pulse().json()["come_back_seconds"] == 0.5


def ask(store: Store, now: Any, request_id: str = "q1", **fields: Any) -> None:
    values = {"cluster": "east", "node": "gpu-01", "kind": "probe-gpus", "ttl_seconds": 30}
    node_requests.ask(store, NodeRequest(id=request_id, **values | fields), now=now())


def state_of(store: Store, now: Any, request_id: str = "q1") -> str:
    return node_requests.answer_for(store, request_id, now=now()).state


def answer(state: str, boot_id: str = "boot-1", **fields: Any) -> dict[str, Any]:
    return {"id": "q1", "state": state, "boot_id": boot_id, **fields}


def test_a_request_is_offered_until_it_is_accepted(agent: Any, declared: Store, now: Any) -> None:
    ask(declared, now)
    asked = [agent.pulse().json()["requests"] for _ in range(2)]
    assert [request["id"] for request in asked[0]] == ["q1"] == [request["id"] for request in asked[1]]
    assert agent.pulse(answers=[answer("accepted")]).json()["requests"] == []


def test_an_answer_arrives_with_its_result(agent: Any, declared: Store, now: Any) -> None:
    ask(declared, now)
    agent.pulse()
    assert agent.pulse(answers=[answer("accepted")]).json()["come_back_seconds"] == 1
    agent.pulse(answers=[answer("done", result={"seen": 8})])
    row = node_requests.answer_for(declared, "q1", now=now())
    assert (row.state, row.result, row.boot_id) == ("done", {"seen": 8}, "boot-1")


def test_another_nodes_requests_are_not_seen_or_answered(agent: Any, declared: Store, now: Any) -> None:
    ask(declared, now, node="gpu-02")
    assert agent.pulse(answers=[answer("done")]).json()["requests"] == []
    assert state_of(declared, now) == "open"


@pytest.mark.parametrize("boots", [("boot-1", "boot-2"), ("boot-2", "boot-2"), ("boot-2", "boot-1")])
def test_an_answer_of_another_boot_is_refused(agent: Any, declared: Store, now: Any, boots: tuple[str, str]) -> None:
    ask(declared, now)
    agent.pulse()
    agent.pulse(answers=[answer("accepted")])
    pulse, answered = boots
    agent.pulse(boot_id=pulse, answers=[answer("done", boot_id=answered)])
    assert state_of(declared, now) == ("failed" if pulse == "boot-2" else "accepted")


def test_a_request_lapses_by_the_servers_clock(agent: Any, declared: Store, now: Any) -> None:
    ask(declared, now)
    agent.pulse(clock=now().timestamp() - 10**6)
    now.pass_by(31)
    assert agent.pulse(answers=[answer("done")]).json()["withdrawn"] == ["q1"]
    assert state_of(declared, now) == "lapsed"


def test_a_withdrawn_request_is_told_to_who_may_hold_it(agent: Any, declared: Store, now: Any) -> None:
    ask(declared, now)
    ask(declared, now, "never-offered")
    node_requests.withdraw(declared, "never-offered", now=now())
    agent.pulse()
    node_requests.withdraw(declared, "q1", now=now() + timedelta(seconds=1))
    now.pass_by(2)
    assert agent.pulse().json()["withdrawn"] == ["q1"]
