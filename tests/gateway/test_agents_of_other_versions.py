"""The wire between two versions: the gateway is the newer one, and what it adds, older agents pass over."""

from __future__ import annotations

from typing import Any

from daytwo.agent.seams import Reply
from daytwo.wire import Record
from tests.agent.fakes import XID_79, Node
from tests.gateway.conftest import Agent, Records

OF_0_1: dict[str, Any] = {
    "stream": 0,
    "sequence": 0,
    "boot_id": "boot-1",
    "version": "0.1.0",
    "started_at": 1.0,
    "identity": {"system_uuid": "u", "serial": "s", "product": "p"},
    "digest": "d1",
    "checks": {"kernel-log": "ok", "nvml": "ok"},
    "inventory": {
        "gpus": [{"index": 0, "uuid": "GPU-1", "serial": "1", "pci": "0000:18:00", "name": "H100"}],
        "driver": "d",
    },
    "answers": [],
}
"""A pulse as 0.1.0 says it. What later agents add has a default."""
OF_A_RECORD = {
    *("sequence", "fault", "entity", "status", "count", "first_seen", "last_seen", "source", "boot_id"),
    *("kernel_sequence", "evidence", "detail"),
}


def test_what_the_first_agents_say_is_understood(agent: Agent, records: Records) -> None:
    answer = agent.post("pulse", json=OF_0_1 | {"clock": agent.time().timestamp()})
    assert (answer.status_code, records.node().agent_version) == (200, "0.1.0")


def test_a_record_says_the_same_in_every_version() -> None:
    assert Record.__annotations__.keys() == OF_A_RECORD, (
        "a record that is refused is set aside: more goes into `detail`"
    )


def test_a_newer_agent_is_told_which_field_is_not_known(agent: Agent) -> None:
    answer = agent.pulse(of_a_later_version=1)
    assert answer.status_code == 422
    assert "of_a_later_version" in answer.text


def test_a_newer_agent_keeps_what_it_has_to_say(agent: Agent) -> None:
    node = Node()
    node.run(1)
    node.log.write(XID_79)
    node.gateway.replies = [Reply(422, {}, "of_a_later_version: found 1, allowed: nothing")] * 3
    node.run(60)
    assert [record["fault"] for record in node.gateway.taken] == ["xid-79"]


def test_an_older_agent_passes_over_what_a_newer_gateway_adds() -> None:
    node = Node()
    later = {"come_back_seconds": 60, "requests": [], "withdrawn": [], "send_full": False, "of_a_later_version": [1]}
    node.gateway.replies = [Reply(200, later)]
    node.run(120)
    assert node.said == []


def test_an_older_agent_names_the_requests_that_it_knows() -> None:
    node = Node()
    node.gateway.requests = [{"id": "q1", "kind": "of-a-later-version", "ttl_seconds": 60, "arguments": {}}]
    node.run(180)
    answer = next(answer for pulse in node.gateway.pulses for answer in pulse["answers"])
    assert (answer["state"], "allowed: " in answer["error"]) == ("failed", True)
