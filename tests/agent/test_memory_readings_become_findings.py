"""Memory as NVML counts it: what fires, what ends it, and what a driver that was loaded again does not change."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo.agent.seams import GpuReading
from daytwo.lab.fake_nvml.harness import FakeNvml
from tests.agent.fakes import UUIDS, Node
from tests.agent.processes import AgentProcess, HttpGateway, until

UNCORRECTABLE = "ecc-uncorrectable"


@pytest.fixture
def node() -> Node:
    node = Node()
    node.run(1)
    return node


def count(node: Node, **changed: Any) -> None:
    """Let the first GPU count this from now on; the agent reads it."""
    node.gpus.edit(0, counts={**node.gpus.gpus[0].counts, **changed})
    node.run(70)


def told(node: Node, fault: str) -> list[tuple[str, int]]:
    return [(each["status"], each["count"]) for each in node.gateway.records if each["fault"] == fault]


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ({"volatile_uncorrected": 1}, UNCORRECTABLE),
        ({"sram_threshold": 1}, "ecc-sram-threshold"),
        ({"banks_none": 1}, "row-remap-exhausted"),
        ({"retirement_pending": 1}, "page-retirement-pending"),
        ({"retired_single_bit": 60, "retired_double_bit": 3}, "page-retirement-limit"),
        ({"volatile_corrected": None}, ""),
        ({"retired_single_bit": 60, "retired_double_bit": 2}, ""),
        ({"aggregate_uncorrected": 4, "aggregate_corrected": 5_000_000}, ""),
        ({"remapped_corrected": 4, "remapped_uncorrected": 1}, ""),
    ],
)
def test_each_count_has_its_fault(node: Node, counts: dict[str, Any], fault: str) -> None:
    count(node, **counts)
    assert [each["fault"] for each in node.gateway.records] == [fault] * bool(fault)


@pytest.mark.parametrize(
    ("flag", "fault"), [("remap_pending", "row-remap-pending"), ("remap_failed", "row-remap-failed")]
)
def test_the_flags_of_the_row_remapper_fire(node: Node, flag: str, fault: str) -> None:
    node.gpus.edit(0, **{flag: True})
    node.run(70)
    assert node.findings(fault) == [("firing", UUIDS[0])]
    assert node.agent.checks["memory-rows"] == "firing"


def test_a_pending_remap_ends_with_its_reading_and_a_failed_one_does_not(node: Node) -> None:
    for value in (True, False):
        node.gpus.edit(0, remap_pending=value, remap_failed=value)
        node.run(70)
    assert [status for status, _ in node.findings("row-remap-pending")] == ["firing", "cleared"]
    assert [status for status, _ in node.findings("row-remap-failed")] == ["firing"]


def test_a_driver_that_is_loaded_again_clears_nothing(node: Node) -> None:
    count(node, volatile_uncorrected=3, aggregate_uncorrected=3)
    count(node, volatile_uncorrected=0)
    assert told(node, UNCORRECTABLE) == [("firing", 1)]


def test_a_driver_that_is_loaded_again_raises_nothing(node: Node) -> None:
    count(node, aggregate_uncorrected=7)
    node.restart()
    count(node, volatile_uncorrected=0, aggregate_uncorrected=9)
    assert told(node, UNCORRECTABLE) == []


def test_errors_after_the_driver_was_loaded_again_fire_again(node: Node) -> None:
    for errors in (3, 0, 1):
        count(node, volatile_uncorrected=errors)
    assert told(node, UNCORRECTABLE) == [("firing", 1), ("firing", 1)]


def test_more_errors_are_counted_while_it_fires(node: Node) -> None:
    for errors in (1, 1, 5):
        count(node, volatile_uncorrected=errors)
    assert told(node, UNCORRECTABLE) == [("firing", 1), ("firing", 4)]


def test_errors_that_came_while_the_agent_was_away_are_seen(node: Node) -> None:
    node.restart()
    count(node, volatile_uncorrected=2)
    assert told(node, UNCORRECTABLE) == [("firing", 1)]


def without_volatile(node: Node, aggregate: int) -> None:
    node.gpus.edit(0, counts={"aggregate_uncorrected": aggregate})
    node.run(70)


def test_a_board_without_volatile_counts_fires_when_its_lifelong_count_grows(node: Node) -> None:
    without_volatile(node, 12)
    assert told(node, UNCORRECTABLE) == [("firing", 1)]  # it was 0 at the reading before


def test_a_lifelong_count_that_was_there_before_is_history() -> None:
    node = Node()
    without_volatile(node, 12)
    without_volatile(node, 12)
    assert told(node, UNCORRECTABLE) == []


@pytest.mark.parametrize(("errors_a_minute", "fires"), [(90, False), (150, True)])
def test_many_corrected_errors_are_recorded_once_they_last(node: Node, errors_a_minute: int, fires: bool) -> None:
    for minute in range(15):
        node.gpus.edit(0, counts={**node.gpus.gpus[0].counts, "volatile_corrected": errors_a_minute * minute})
        node.run(60)
    assert (told(node, "ecc-corrected-rate") == [("firing", 1)]) is fires


def test_a_count_that_cannot_be_read_is_a_finding_once_it_lasts(node: Node) -> None:
    node.gpus.edit(0, counts={"volatile_uncorrected": None}, counts_error="volatile_uncorrected: Unknown Error")
    node.run(70)
    assert node.agent.checks["memory-errors"] == "unknown"
    node.run(700)
    assert node.findings("memory-unreadable") == [("firing", UUIDS[0])]


def test_what_no_gpu_counts_is_unsupported(node: Node) -> None:
    for index in range(2):
        node.gpus.edit(index, counts={})
    node.run(70)
    assert (node.agent.checks["memory-errors"], node.gateway.records) == ("unsupported", [])


def test_a_lost_gpu_has_no_counts_to_miss(node: Node) -> None:
    node.gpus.gpus[1] = GpuReading(index=1, ok=False, lost=True, error="GPU is lost")
    node.run(700)
    assert node.agent.checks["memory-errors"] == "ok"
    assert node.findings("memory-unreadable") == []


def test_a_real_agent_tells_of_errors_that_the_library_counts(
    agent: AgentProcess, http_gateway: HttpGateway, fake_nvml: FakeNvml
) -> None:
    agent.start()
    until(lambda: any(pulse["inventory"] for pulse in http_gateway.pulses()))
    fake_nvml.uncorrectable(1, 2)
    record = until(lambda: http_gateway.records(UNCORRECTABLE))[0]
    assert (record["entity"], record["detail"]["count"]) == (fake_nvml.uuid(1), 2)
