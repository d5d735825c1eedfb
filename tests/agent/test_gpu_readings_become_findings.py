from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from daytwo.agent.inventory import short_address
from daytwo.agent.seams import GpuReading
from tests.agent.fakes import UUIDS, Node, board

XID_154 = "NVRM: Xid (PCI:0000:1a:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"


@pytest.fixture
def node() -> Node:
    node = Node()
    node.run(1)
    return node


def test_a_healthy_board_says_nothing_and_all_checks_are_ok(node: Node) -> None:
    node.run(600)
    assert node.gateway.records == []
    assert set(node.agent.checks.values()) == {"ok"}


def test_before_the_first_reading_every_check_is_unknown() -> None:
    node = Node()
    assert set(node.agent.checks.values()) == {"unknown"}


def test_a_gpu_that_nvml_calls_lost_is_named(node: Node) -> None:
    node.gpus.gpus[1] = GpuReading(index=1, ok=False, lost=True, error="GPU is lost")
    node.run(70)
    assert node.findings("gpu-off-bus") == [("firing", UUIDS[1])]
    assert node.agent.checks["gpu-count"] == "firing"


def test_a_gpu_that_vanished_while_the_node_was_down_is_named(node: Node) -> None:
    del node.gpus.gpus[0]
    node.boot()
    node.run(1)
    assert node.findings("gpu-off-bus") == [("firing", UUIDS[0])]


def test_fewer_gpus_than_told_and_never_seen_is_a_finding_of_the_node() -> None:
    node = Node(expected_gpus=8)
    node.run(1)
    assert node.findings("gpu-off-bus") == [("firing", "node")]
    assert node.gateway.records[0]["detail"] == {"expected": 8, "seen": 2}


def test_a_gpu_still_gone_after_a_boot_is_said_again_for_that_boot(node: Node) -> None:
    del node.gpus.gpus[0]
    node.run(70)
    node.boot()
    node.run(1)
    assert [record["boot_id"] for record in node.gateway.records] == ["boot-1", "boot-2"]


def test_a_gpu_that_comes_back_is_not_cleared_by_a_reading(node: Node) -> None:
    node.gpus.gpus.pop()
    node.run(70)
    node.gpus.gpus = board()
    node.run(70)
    assert node.findings("gpu-off-bus") == [("firing", UUIDS[1])]
    assert node.agent.checks["gpu-count"] == "ok"


def test_a_swapped_board_is_no_lost_gpu_and_ends_the_old_ones_readings(node: Node) -> None:
    node.gpus.edit(0, recovery_action=1)
    node.run(70)
    node.gpus.gpus[0] = replace(board()[0], uuid=UUIDS[7])
    node.boot()
    node.run(1)
    assert node.findings("gpu-off-bus") == []
    assert node.findings("recovery-action") == [("firing", UUIDS[0]), ("cleared", UUIDS[0])]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 77])
def test_a_recovery_action_fires_and_zero_clears_it(node: Node, number: int) -> None:
    node.gpus.edit(0, recovery_action=number)
    node.run(70)
    node.gpus.edit(0, recovery_action=0)
    node.run(70)
    assert node.findings("recovery-action") == [("firing", UUIDS[0]), ("cleared", UUIDS[0])]
    assert node.gateway.records[0]["detail"] == {"recovery_action": number}


def test_a_zero_from_nvml_ends_an_xid_154(node: Node) -> None:
    node.log.write(XID_154)
    node.run(130)
    assert node.findings("xid-154") == [("firing", UUIDS[0]), ("cleared", UUIDS[0])]


def test_a_zero_that_was_asked_for_before_the_xid_154_says_nothing_about_it(node: Node) -> None:
    node.gpus.answers = False
    node.run(70)
    node.log.write(XID_154)
    node.run(1)
    node.gpus.answers = True
    node.run()
    assert node.findings("xid-154") == [("firing", UUIDS[0])]


HARDWARE = [0x8, 0x40, 0x80, 0x40 | 0x20 | 0x4]
SOFTWARE = [0x0, 0x1, 0x2, 0x4, 0x10, 0x20, 0x24]


@pytest.mark.parametrize("reasons", HARDWARE)
def test_a_slowdown_by_the_hardware_fires_after_its_debounce(node: Node, reasons: int) -> None:
    node.gpus.edit(0, reasons=reasons)
    node.run(500)
    assert node.findings("thermal-throttle") == []
    node.run(300)
    assert node.findings("thermal-throttle") == [("firing", UUIDS[0])]


@pytest.mark.parametrize("reasons", SOFTWARE)
def test_a_slowdown_by_the_software_is_no_fault(node: Node, reasons: int) -> None:
    node.gpus.edit(0, reasons=reasons)
    node.run(2_000)
    assert node.findings("thermal-throttle") == []


def test_a_slowdown_that_blips_is_no_fault(node: Node) -> None:
    for reasons in (0x40, 0) * 20:
        node.gpus.edit(0, reasons=reasons)
        node.run(300)
    assert node.findings("thermal-throttle") == []


def test_a_slowdown_that_ends_is_cleared(node: Node) -> None:
    node.gpus.edit(0, reasons=0x80)
    node.run(800)
    node.gpus.edit(0, reasons=0)
    node.run(800)
    assert node.findings("thermal-throttle") == [("firing", UUIDS[0]), ("cleared", UUIDS[0])]


@pytest.mark.parametrize("trouble", ["hung", "failed", "no-driver", "no-library"])
def test_nvml_that_cannot_be_read_is_a_finding_and_no_count(node: Node, trouble: str) -> None:
    node.gpus.trouble = trouble
    node.run(70)
    assert node.findings("nvml-unreadable") == [("firing", "node")]
    assert node.findings("gpu-off-bus") == []
    assert node.agent.checks | {"kernel-log": "ok"} == {
        "kernel-log": "ok",
        "nvml": "firing",
        "gpu-count": "unknown",
        "thermal": "unknown",
        "recovery-action": "unknown",
        "memory-errors": "unknown",
        "memory-rows": "unknown",
    }


def test_nvml_that_answers_again_clears_it(node: Node) -> None:
    node.gpus.trouble = "hung"
    node.run(70)
    node.gpus.trouble = ""
    node.run(130)
    assert node.findings("nvml-unreadable") == [("firing", "node"), ("cleared", "node")]


def test_a_sick_driver_is_asked_ever_more_rarely(node: Node) -> None:
    node.gpus.trouble = "hung"
    node.run(60)
    asked = node.gpus.asked
    node.run(3_600)
    assert 7 <= node.gpus.asked - asked <= 12


@pytest.mark.parametrize("trouble", ["no-driver", "no-library"])
def test_a_node_without_gpus_needs_no_driver(trouble: str) -> None:
    node = Node(expected_gpus=0)
    node.gpus.trouble = trouble
    node.run(200)
    assert node.gateway.records == []
    assert (node.agent.checks["nvml"], node.agent.checks["gpu-count"]) == ("unsupported", "unsupported")


def test_one_reading_that_fails_is_a_finding_of_its_gpu(node: Node) -> None:
    node.gpus.edit(1, ok=False, error="recovery_action: Unknown Error", recovery_action=None)
    node.run(70)
    assert node.findings("nvml-unreadable") == [("firing", UUIDS[1])]
    assert node.agent.checks["recovery-action"] == "unknown"


@pytest.mark.parametrize(("name", "check"), [("reasons", "thermal"), ("recovery_action", "recovery-action")])
def test_a_reading_that_no_device_has_is_unsupported_and_not_unknown(name: str, check: str) -> None:
    node = Node()
    for index in range(2):
        node.gpus.edit(index, **{name: None, "unsupported": (name,)})
    node.run(1)
    assert node.agent.checks[check] == "unsupported"
    assert node.gateway.records == []


def test_what_fires_is_not_said_again_after_a_restart_of_the_agent(node: Node) -> None:
    node.gpus.edit(0, recovery_action=2)
    node.run(70)
    node.restart()
    node.run(70)
    assert node.findings("recovery-action") == [("firing", UUIDS[0])]


def test_a_reading_that_was_good_again_while_the_agent_was_down_is_cleared(node: Node) -> None:
    node.gpus.edit(0, recovery_action=2)
    node.run(70)
    node.gpus.edit(0, recovery_action=0)
    node.restart()
    node.run(1)
    assert node.findings("recovery-action")[-1] == ("cleared", UUIDS[0])


def test_the_inventory_is_told_once(node: Node) -> None:
    node.run(300)
    told: list[Any] = [pulse["inventory"] for pulse in node.gateway.pulses if pulse["inventory"]]
    assert [[gpu["uuid"] for gpu in each["gpus"]] for each in told] == [[*UUIDS[:2]]]


@pytest.mark.parametrize("spelling", ["00000000:1A:00.0", "0000:1a:00", "0000:1A:00.0"])
def test_every_spelling_of_an_address_is_the_same_gpu(spelling: str) -> None:
    assert short_address(spelling) == "0000:1a:00"


def test_a_pci_domain_above_four_digits_is_kept() -> None:
    assert short_address("00010000:01:00.0") == "10000:01:00"
