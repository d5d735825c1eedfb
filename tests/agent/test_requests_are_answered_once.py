from __future__ import annotations

from typing import Any

import pytest

from daytwo.agent.seams import Reply
from tests.agent.fakes import EPOCH, UUIDS, XID_79, Node


@pytest.fixture
def node() -> Node:
    node = Node(gpu_poll_seconds=36_000.0)
    node.run(1)
    return node


def asked(kind: str, id_: str = "r1", ttl: float = 60.0) -> dict[str, Any]:
    return {"id": id_, "kind": kind, "ttl_seconds": ttl, "arguments": {}}


def offer(node: Node, *requests: dict[str, Any], withdrawn: list[str] | None = None) -> None:
    """Let the next pulse bring these; later ones bring nothing."""
    body = {"requests": list(requests), "withdrawn": withdrawn or [], "come_back_seconds": 1, "send_full": False}
    node.run(61)
    node.gateway.calls.clear()
    node.gateway.replies = [Reply(200, body)]
    node.run(61)


def answers(node: Node) -> list[dict[str, Any]]:
    return [answer for pulse in node.gateway.pulses for answer in pulse["answers"]]


def states(node: Node) -> list[str]:
    return [answer["state"] for answer in answers(node)]


@pytest.mark.parametrize("kind", ["probe-gpus", "probe-kernel"])
def test_a_request_is_accepted_and_then_done(node: Node, kind: str) -> None:
    offer(node, asked(kind))
    assert states(node) == ["accepted", "done"]
    assert {answer["boot_id"] for answer in answers(node)} == {"boot-1"}


def test_probe_gpus_reads_afresh(node: Node) -> None:
    before = node.gpus.asked
    node.gpus.edit(1, remap_pending=True, reasons=0x40)
    offer(node, asked("probe-gpus"))
    result = answers(node)[-1]["result"]
    assert node.gpus.asked > before
    assert (result["expected"], result["seen"], result["driver"], result["error"]) == (2, 2, "580.95.05", None)
    assert result["gpus"][1] == {
        "index": 1,
        "uuid": UUIDS[1],
        "pci": "0000:1b:00",
        "ok": True,
        "error": None,
        "recovery_action": 0,
        "remap_pending": True,
        "remap_failed": False,
        "hw_slowdown": True,
        "unsupported": [],
    }


def test_a_reading_that_the_device_does_not_have_is_named(node: Node) -> None:
    node.gpus.edit(0, reasons=None, unsupported=("reasons",))
    offer(node, asked("probe-gpus"))
    gpu = answers(node)[-1]["result"]["gpus"][0]
    assert (gpu["hw_slowdown"], gpu["unsupported"]) == (None, ["hw_slowdown"])


def test_a_probe_of_a_hanging_driver_answers_that_it_hangs(node: Node) -> None:
    node.gpus.trouble = "hung"
    offer(node, asked("probe-gpus"))
    assert (states(node)[-1], answers(node)[-1]["result"]["error"]) == ("done", "NVML is hung")


def test_probe_kernel_tells_the_xids_of_this_boot(node: Node) -> None:
    node.log.write(XID_79, at=EPOCH + 100)
    node.log.write(XID_79, at=EPOCH + 110)
    node.log.write("NVRM: loading NVIDIA UNIX x86_64 Kernel Module")
    offer(node, asked("probe-kernel"))
    result = answers(node)[-1]["result"]
    xid = result["xids"][0]
    assert (result["boot_id"], result["last_kernel_sequence"], result["readable"]) == ("boot-1", 3, True)
    assert [(xid["xid"], xid["pci"], xid["kernel_sequence"])] == [(79, "0000:1a:00", 2)]
    assert xid["age_seconds"] == pytest.approx(result["uptime_seconds"] - 110)


def test_probe_kernel_remembers_xids_across_a_restart_of_the_agent(node: Node) -> None:
    node.log.write(XID_79)
    node.run(1)
    node.restart()
    offer(node, asked("probe-kernel"))
    assert len(answers(node)[-1]["result"]["xids"]) == 1


def test_probe_kernel_knows_no_xids_of_an_earlier_boot(node: Node) -> None:
    node.log.write(XID_79)
    node.run(1)
    node.boot()
    offer(node, asked("probe-kernel"))
    assert answers(node)[-1]["result"]["xids"] == []


def test_an_id_that_comes_again_gets_the_same_answer_without_a_second_probe(node: Node) -> None:
    offer(node, asked("probe-gpus"))
    done, before = answers(node)[-1], node.gpus.asked
    node.gpus.edit(0, recovery_action=2)
    offer(node, asked("probe-gpus"))
    assert (answers(node), node.gpus.asked) == ([done], before)


def test_what_was_done_is_remembered_across_a_restart_of_the_agent(node: Node) -> None:
    offer(node, asked("probe-gpus"))
    done, before = answers(node)[-1], node.gpus.asked
    node.restart()
    offer(node, asked("probe-gpus"))
    assert (answers(node), node.gpus.asked) == ([done], before + 1)


def test_in_another_boot_the_same_id_is_done_again(node: Node) -> None:
    offer(node, asked("probe-kernel"))
    node.boot()
    offer(node, asked("probe-kernel"))
    assert [(answer["state"], answer["boot_id"]) for answer in answers(node)] == [
        ("accepted", "boot-2"),
        ("done", "boot-2"),
    ]


def test_an_answer_is_repeated_until_it_arrives(node: Node) -> None:
    body = {"requests": [asked("probe-kernel", ttl=600)], "withdrawn": [], "come_back_seconds": 1}
    node.gateway.replies = [Reply(200, body), Reply(0, error="reset"), Reply(503, {}), Reply(0, error="reset")]
    node.run(120)
    assert states(node)[-1] == "done"
    assert len(states(node)) == 2 * 4


def test_an_accepted_request_is_done_after_a_restart_of_the_agent(node: Node) -> None:
    node.gpus.answers = False
    offer(node, asked("probe-gpus", ttl=600))
    assert states(node) == ["accepted"]
    node.restart()
    node.gpus.answers = True
    node.run(5)
    assert states(node)[-1] == "done"


def test_a_withdrawn_request_is_not_answered(node: Node) -> None:
    node.gpus.answers = False
    offer(node, asked("probe-gpus", ttl=600))
    offer(node, withdrawn=["r1"])
    node.gpus.answers = True
    node.run(120)
    assert states(node) == []


def test_a_request_that_lapsed_before_it_began_is_not_done(node: Node) -> None:
    offer(node, asked("probe-gpus", ttl=0.0))
    assert states(node) == ["accepted"]


def test_an_unknown_kind_fails_with_what_is_allowed(node: Node) -> None:
    offer(node, asked("open-pod-bay-doors"))
    assert answers(node)[-1]["state"] == "failed"
    allowed = "probe-gpus, probe-kernel, collect-evidence, quiesce"
    assert answers(node)[-1]["error"] == f"kind: found 'open-pod-bay-doors', allowed: {allowed}"


@pytest.mark.parametrize("garbage", [None, "x", [None], [{}], [{"id": 5}], [{"id": "r1"}], [{"id": "r1", "kind": []}]])
def test_garbage_instead_of_requests_is_survived(node: Node, garbage: Any) -> None:
    node.gateway.replies = [Reply(200, {"requests": garbage, "withdrawn": garbage, "come_back_seconds": 1})]
    node.run(200)
    assert "done" not in states(node)


def test_a_request_that_is_offered_for_ever_is_no_busy_loop(node: Node) -> None:
    node.gateway.requests = [asked("probe-kernel", ttl=600)]
    node.run(600)
    assert len(node.gateway.pulses) < 20
