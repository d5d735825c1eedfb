"""Streams and sequences: what is acknowledged is durable, and nothing counts twice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest


def test_a_record_makes_a_finding_and_its_node_due(agent: Any, records: Any) -> None:
    before = records.node().due
    answer = agent.findings(agent.record()).json()
    assert (answer["stream"], answer["acknowledged"]) == (1, 1)
    assert [(row.fault, row.status) for row in records.findings()] == [("xid-79", "firing")]
    assert records.node().due > before


def test_a_record_that_is_sent_again_counts_once(agent: Any, records: Any) -> None:
    agent.findings()
    for _ in range(3):
        assert agent.findings(agent.record(kernel_sequence=7)).json()["acknowledged"] == 1
    assert records.findings()[0].count == 1


def test_a_kernel_record_in_a_new_stream_counts_once(agent: Any, records: Any) -> None:
    for _ in range(2):
        agent.findings(agent.record(kernel_sequence=7), stream=0)
    assert records.findings()[0].count == 1


def test_each_new_stream_has_a_higher_number(agent: Any) -> None:
    assert [agent.findings(stream=0).json()["stream"] for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("stream", [1, 3, 99])
def test_a_stream_that_is_not_the_newest_is_told_so(agent: Any, records: Any, stream: int) -> None:
    agent.findings(stream=0)
    agent.findings(stream=0)
    answer = agent.findings(agent.record(), stream=stream)
    assert (answer.status_code, answer.json()["stream"]) == (409, 2)
    assert records.findings() == []


def test_records_out_of_order_end_as_in_order(agent: Any, records: Any) -> None:
    reading = {"fault": "gpu-off-bus", "entity": "GPU-1"}
    agent.findings()
    agent.findings(agent.record(3, status="firing", **reading))
    agent.findings(agent.record(2, status="firing", **reading), agent.record(1, status="firing", **reading))
    assert [(row.status, row.count) for row in records.findings()] == [("firing", 3)]


def test_a_gap_is_not_waited_for(agent: Any) -> None:
    agent.findings()
    assert agent.findings(agent.record(5)).json()["acknowledged"] == 5


@pytest.mark.parametrize("off", [-(10**9), -86400, 0, 86400, 10**11])
def test_a_wrong_clock_moves_no_finding_in_time(agent: Any, records: Any, now: Any, off: float) -> None:
    clock = now().timestamp() + off
    agent.findings(agent.record(first_seen=clock - 20, last_seen=clock - 10), clock=clock)
    row = records.findings()[0]
    assert [(now() - at).total_seconds() for at in (row.first_seen, row.last_seen)] == pytest.approx([20, 10], abs=1e-3)
    assert records.node().clock_skew_seconds == pytest.approx(off, abs=1e-3)


@pytest.mark.parametrize("off", [10**6, -(10**9)])
def test_a_time_that_cannot_be_counts_as_now(agent: Any, records: Any, now: Any, off: float) -> None:
    said = now().timestamp() + off
    agent.findings(agent.record(first_seen=said, last_seen=said))
    assert records.findings()[0].first_seen == now() == datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_a_fault_nobody_knows_is_kept_with_its_name(agent: Any, records: Any) -> None:
    agent.findings(agent.record(fault="brand-new-fault"))
    row = records.findings()[0]
    assert (row.fault, row.detail["reported_as"]) == ("unknown-code", "brand-new-fault")


def test_a_node_that_fires_is_asked_to_come_back_sooner(agent: Any) -> None:
    assert agent.findings().json()["come_back_seconds"] == 60
    assert agent.findings(agent.record()).json()["come_back_seconds"] == 10
