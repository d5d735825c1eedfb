"""The control plane has forgotten what it was told: the agent says it again, and only what is otherwise by now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daytwo.agent.identity import SystemClock
from daytwo.agent.kernel_log import FileLog
from daytwo.agent.seams import Reply
from tests.agent.fakes import UUIDS, XID_79, Node
from tests.agent.processes import until

ACTION = ["recovery-action", UUIDS[0]]


@pytest.fixture
def node() -> Node:
    node = Node()
    node.log.write(XID_79)
    node.gpus.edit(0, recovery_action=2)
    node.run(120)
    node.gateway.taken.clear()
    return node


def told(node: Node, *firing: list[str]) -> list[tuple[str, str, str]]:
    """What the agent says once it has heard what the store believes."""
    body: dict[str, Any] = {"come_back_seconds": 60, "requests": [], "withdrawn": [], "send_full": False}
    node.gateway.replies = [Reply(200, body | {"firing": [*firing]})]
    node.run(300)
    return [(record["fault"], record["entity"], record["status"]) for record in node.gateway.taken]


def test_what_fires_and_is_not_known_is_said_again(node: Node) -> None:
    assert ("recovery-action", UUIDS[0], "firing") in told(node)


def test_what_is_known_is_not_said_again(node: Node) -> None:
    assert told(node, ACTION) == []


def test_what_has_ended_meanwhile_is_cleared(node: Node) -> None:
    assert told(node, ACTION, ["recovery-action", UUIDS[1]]) == [("recovery-action", UUIDS[1], "cleared")]


def test_the_log_of_this_boot_is_read_from_its_start(node: Node) -> None:
    node.log.started_after = (1,)
    told(node)
    assert node.log.started_after is None


def test_a_new_stream_is_asked_for(node: Node) -> None:
    told(node)
    asked = [call.body["stream"] for call in node.gateway.calls if call.what == "findings"]
    assert asked[-1] == 0


@pytest.mark.parametrize("nonsense", [None, "xid-79", 7, [["xid-79"], "x", [1, 2], None]])
def test_nonsense_stops_nothing(node: Node, nonsense: Any) -> None:
    node.gateway.replies = [Reply(200, {"come_back_seconds": 60, "firing": nonsense})]
    node.run(300)
    assert node.gateway.pulses[-1]["digest"]


def test_a_log_that_is_begun_again_is_read_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "kernel.log"
    file.write_text("6,1,1000,-;one\n6,2,2000,-;two\n")
    log = FileLog(file, clock=SystemClock(), wake=lambda: None)
    texts: list[str] = []

    def read(count: int) -> bool:
        texts.extend(each.record.text for each in log.collect())
        return len(texts) == count

    log.start(None, same_boot=False)
    until(lambda: read(2))
    log.start(None, same_boot=True)
    until(lambda: read(4))
    log.close()
    assert texts == ["one", "two"] * 2
