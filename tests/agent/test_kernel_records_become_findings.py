from __future__ import annotations

import pytest

from daytwo.agent.seams import LogStatus
from tests.agent.fakes import EPOCH, UUIDS, XID_79, Node

UNKNOWN_GPU = "NVRM: Xid (PCI:0000:ff:00): 79, GPU has fallen off the bus."
NAMED = "NVRM: GPU at PCI:0000:ff:00: GPU-509665ad-b600-ac93-3616-d754b23d636d"


@pytest.fixture
def node() -> Node:
    node = Node()
    node.run(1)
    return node


def test_a_gpu_that_nvml_does_not_know_is_named_by_its_address(node: Node) -> None:
    node.log.write(UNKNOWN_GPU)
    node.run()
    assert node.findings("xid-79") == [("firing", "pci:0000:ff:00")]


def test_a_gpu_that_only_the_driver_named_is_named_by_its_uuid(node: Node) -> None:
    node.log.write(NAMED)
    node.log.write(UNKNOWN_GPU)
    node.run()
    assert node.findings("xid-79") == [("firing", "GPU-509665ad-b600-ac93-3616-d754b23d636d")]


def test_records_wait_for_the_names_of_the_gpus_but_not_for_ever() -> None:
    node = Node()
    node.gpus.answers = False
    node.log.write(XID_79)
    node.run(4)
    assert node.gateway.records == []
    node.run(2)
    assert node.findings("xid-79") == [("firing", "pci:0000:1a:00")]


def test_a_record_of_a_process_is_ignored(node: Node) -> None:
    node.log.write(XID_79, facility=1)
    node.run(1)
    assert node.gateway.records == []


def test_a_record_of_a_process_is_believed_in_a_test() -> None:
    node = Node(accept_user_records=True)
    node.log.write(XID_79, facility=1)
    node.run(1)
    assert node.findings("xid-79") == [("firing", UUIDS[0])]


def test_a_gpu_lost_in_three_records_is_found(node: Node) -> None:
    node.log.write("NVRM: The NVIDIA GPU 0000:1b:00.0")
    node.log.write("NVRM: (PCI ID: 10de:2901) installed in this system has")
    node.log.write("NVRM: fallen off the bus and is not responding to commands.")
    node.run()
    assert node.findings("gpu-off-bus") == [("firing", UUIDS[1])]


def test_an_xid_154_back_to_zero_clears_both_names_of_the_reading(node: Node) -> None:
    node.log.write("NVRM: Xid (PCI:0000:1a:00): 154, GPU recovery action changed from 0x1 (Reset) to 0x0 (None)")
    node.run()
    assert node.findings("xid-154") == node.findings("recovery-action") == [("cleared", UUIDS[0])]


def test_a_restart_goes_on_after_the_last_record(node: Node) -> None:
    node.log.write("a line")
    node.log.write(XID_79)
    node.run(1)
    node.restart()
    assert node.log.started_after == (2,)


def test_a_boot_reads_its_own_log_from_the_start(node: Node) -> None:
    node.log.write(XID_79)
    node.run(1)
    node.boot()
    assert node.log.started_after is None


def test_the_same_number_in_another_boot_is_another_record(node: Node) -> None:
    node.log.write(XID_79)
    node.run(1)
    node.boot("boot-2")
    node.log.write(XID_79)
    node.run(1)
    numbers = [(record["boot_id"], record["kernel_sequence"]) for record in node.gateway.records]
    assert numbers == [("boot-1", 1), ("boot-2", 1)]


def test_what_was_folded_when_the_agent_died_is_not_lost(node: Node) -> None:
    for _ in range(20):
        node.log.write(XID_79)
    node.run()
    node.restart()
    node.run(30)
    assert sum(record["count"] for record in node.gateway.records) == 20


def test_a_finding_says_when_the_kernel_wrote_it(node: Node) -> None:
    node.log.write(XID_79, at=EPOCH - 5_000.0)
    node.run()
    assert node.gateway.records[0]["first_seen"] == EPOCH - 5_000.0


@pytest.mark.parametrize(
    "status", [LogStatus(True, lost=3), LogStatus(True, damaged=1), LogStatus(False, error="denied")]
)
def test_what_was_missed_is_said_once(node: Node, status: LogStatus) -> None:
    node.log.current = status
    node.run(600)
    assert node.findings("agent-missed-records") == [("firing", "node")]
    assert node.agent.checks["kernel-log"] == ("firing" if status.readable else "unknown")


def test_an_hour_without_misses_ends_it(node: Node) -> None:
    node.log.current = LogStatus(True, lost=3)
    node.run(3_500)
    node.log.current = LogStatus(True, lost=4)
    node.run(3_500)
    assert node.findings("agent-missed-records") == [("firing", "node")]
    node.run(200)
    assert node.findings("agent-missed-records")[-1] == ("cleared", "node")


def test_another_source_of_the_same_boot_brings_nothing_again(node: Node) -> None:
    node.log.write(XID_79, at=EPOCH + 50)
    node.run(70)
    node.log.current = LogStatus(readable=True, source="journal")
    node.restart()
    node.log.write(XID_79, at=EPOCH + 50)
    node.log.write(XID_79, at=EPOCH + 60)
    node.run(70)
    assert [record["last_seen"] - EPOCH for record in node.gateway.records] == [50, 60]
