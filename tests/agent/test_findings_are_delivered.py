"""What the agent does with each answer of the gateway, and with none."""

from __future__ import annotations

import pytest

from daytwo.agent.seams import Reply
from tests.agent.fakes import UUIDS, XID_79, Node

XID_48 = "NVRM: Xid (PCI:0000:1b:00): 48, pid=1, name=python, DBE (double bit error) at 0x1"


@pytest.fixture
def node() -> Node:
    node = Node()
    node.run(1)
    return node


def test_a_kernel_line_arrives_as_a_finding_on_its_gpu(node: Node) -> None:
    node.log.write(XID_79)
    node.run()
    record = node.gateway.records[0]
    assert (record["fault"], record["entity"], record["kernel_sequence"]) == ("xid-79", UUIDS[0], 1)
    assert record["evidence"] == [XID_79]


def test_what_is_acknowledged_is_not_sent_again(node: Node) -> None:
    node.log.write(XID_79)
    node.run(300)
    assert len(node.gateway.records) == 1


def test_an_hour_without_the_gateway_loses_nothing(node: Node) -> None:
    node.gateway.up = False
    for _ in range(60):
        node.log.write(XID_48)
        node.run(60)
    node.gateway.calls.clear()
    node.gateway.up = True
    node.run(120)
    assert sum(record["count"] for record in node.gateway.records) == 60


def test_tries_are_a_minute_apart_while_the_gateway_is_away_and_said_once(node: Node) -> None:
    node.gateway.up = False
    node.gateway.calls.clear()
    node.run(3_600)
    assert 60 <= len(node.gateway.calls) <= 130
    assert len(node.said) == 1


def test_an_old_stream_is_numbered_from_one_again(node: Node) -> None:
    node.log.write(XID_79)
    node.run()
    node.gateway.replies = [Reply(409, {"error": "old", "stream": 4}, "old")]
    node.gateway.stream = 5
    node.log.write(XID_48)
    node.run(1)
    refused, again = [call.body for call in node.gateway.calls if call.what == "findings"][-2:]
    assert (refused["stream"], refused["records"][0]["sequence"]) == (1, 2)
    assert (again["stream"], again["records"][0]["sequence"]) == (0, 1)


def test_an_old_stream_over_and_over_is_no_endless_loop(node: Node) -> None:
    node.gateway.calls.clear()
    node.gateway.replies = [Reply(409, {"stream": 4}, "old")] * 1_000
    node.log.write(XID_79)
    node.run(60)
    assert len(node.gateway.calls) < 20


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_token_is_said_once_and_tried_each_minute(node: Node, status: int) -> None:
    node.gateway.calls.clear()
    node.gateway.replies = [Reply(status, {}, "the token is unknown")] * 100
    node.log.write(XID_79)
    node.run(600)
    assert 10 <= len(node.gateway.calls) <= 21
    assert node.said == [f"findings not delivered: {status} the token is unknown"]


@pytest.mark.parametrize("status", [413, 422])
def test_a_record_that_is_refused_is_set_aside_and_the_others_arrive(node: Node, status: int) -> None:
    node.gateway.refuses = {"xid-48": status}
    for line in (XID_79, XID_48, XID_79):
        node.log.write(line)
    node.run(60)
    assert [record["fault"] for record in node.gateway.taken] == ["xid-79", "xid-79", "agent-missed-records"]
    assert ["set aside" in line and "xid-48" in line for line in node.said] == [True]


@pytest.mark.parametrize("status", [413, 422])
def test_a_gateway_that_refuses_even_the_complaint_is_no_endless_loop(node: Node, status: int) -> None:
    node.gateway.refuses = {"xid-79": status, "agent-missed-records": status}
    node.gateway.calls.clear()
    node.log.write(XID_79)
    node.run(600)
    assert len(node.gateway.calls) < 20


def test_a_refusal_of_the_envelope_sets_nothing_aside(node: Node) -> None:
    node.gateway.replies = [Reply(422, {}, "clock: input should be a number")] * 3
    node.log.write(XID_79)
    node.run(60)
    assert [record["sequence"] for record in node.gateway.records] == [1, 1, 1, 1]


def test_an_answer_that_acknowledges_nothing_is_no_success(node: Node) -> None:
    node.gateway.calls.clear()
    node.gateway.replies = [Reply(200, {"stream": 1, "acknowledged": 0})] * 5
    node.log.write(XID_79)
    node.run(3)
    assert 2 <= len(node.gateway.calls) <= 5


@pytest.mark.parametrize(("told", "least", "most"), [(1.0, 60, 80), (10.0, 6, 9), (600.0, 0, 0)])
def test_the_agent_comes_back_when_it_is_told_to(node: Node, told: float, least: int, most: int) -> None:
    node.gateway.come_back_seconds = told
    node.run(60)
    node.gateway.calls.clear()
    node.run(60)
    assert least <= len(node.gateway.pulses) <= most


@pytest.mark.parametrize("nonsense", [None, "soon", True, -5, 0, float("nan")])
def test_nonsense_in_an_answer_is_no_busy_loop(node: Node, nonsense: object) -> None:
    node.gateway.come_back_seconds = nonsense
    node.gateway.calls.clear()
    node.run(60)
    assert len(node.gateway.calls) <= 340


def test_check_states_are_sent_in_full_only_when_they_changed(node: Node) -> None:
    node.run(120)
    node.gpus.edit(0, recovery_action=2)
    node.run(120)
    told = [pulse["checks"] for pulse in node.gateway.pulses if pulse["checks"]]
    assert [states["recovery-action"] for states in told] == ["unknown", "ok", "firing"]


def test_check_states_are_sent_again_when_the_gateway_wants_them(node: Node) -> None:
    full = Reply(200, {"come_back_seconds": 60, "requests": [], "withdrawn": [], "send_full": True})
    node.gateway.replies = [full]
    node.gateway.calls.clear()
    node.run(180)
    assert [pulse["checks"] is not None for pulse in node.gateway.pulses] == [False, True, False]
