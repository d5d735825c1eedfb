"""A node runs other people's jobs: whatever it sends, the gateway answers and says what is wrong."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from daytwo.gateway.app import Gateway
from daytwo.gateway.limits import Buckets, Rate

KIB = 1024


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sequence", 0),
        ("sequence", 2**31),
        ("sequence", "1"),
        ("fault", "Xid 79"),
        ("fault", "slurm-drained"),
        ("fault", "agent-silent"),
        ("fault", "rack-outlier"),
        ("fault", "rack-outliers"),
        ("entity", ""),
        ("entity", "GPU-1\x00"),
        ("entity", "x" * 201),
        ("status", "fine"),
        ("count", 0),
        ("count", 1.5),
        ("first_seen", -1),
        ("last_seen", 1e300),
        ("last_seen", "yesterday"),
        ("boot_id", None),
        ("kernel_sequence", 2**63),
        ("evidence", "one line"),
        ("detail", {"a": {"b": 1}}),
        ("detail", {"a": 10**400}),
        ("detail", {str(n): n for n in range(33)}),
    ],
)
def test_a_wrong_field_is_named(agent: Any, records: Any, field: str, value: object) -> None:
    answer = agent.findings(agent.record(), agent.record() | {field: value})
    assert answer.status_code == 422
    assert answer.json()["field"].startswith(f"records[1].{field}")
    assert records.findings() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 201),
        ("temperature", "hot"),
        ("temperature", None),
        ("held_down", 1),
        ("power_limit", -1),
        ("power_limit", 10**400),
        ("fan", 1),
    ],
)
def test_a_wrong_load_of_a_gpu_is_named(agent: Any, field: str, value: object) -> None:
    load = {"temperature": 60, "held_down": None, "power_limit": None} | {field: value}
    gpu = {"index": 0, "uuid": "GPU-1", "serial": None, "pci": None, "name": "H200", "load": load}
    answer = agent.pulse(inventory={"gpus": [gpu], "driver": None})
    assert (answer.status_code, answer.json()["field"]) == (422, f"inventory.gpus[0].load.{field}")


def test_what_a_gpu_is_like_under_load_is_kept(agent: Any, records: Any) -> None:
    load = {"temperature": 60, "held_down": False, "power_limit": 700}
    gpu = {"index": 0, "uuid": "GPU-1", "serial": None, "pci": None, "name": "H200", "load": load}
    assert agent.pulse(inventory={"gpus": [gpu], "driver": None}).status_code == 200
    assert records.node().inventory["gpus"] == [gpu]


def test_a_field_too_many_is_named(agent: Any) -> None:
    answer = agent.pulse(temporal="localhost:7233")
    assert (answer.status_code, answer.json()["field"]) == (422, "temporal")


def test_free_text_is_made_harmless_instead(agent: Any, records: Any) -> None:
    lines = ["a\x00b\x1b[2J", *(f"{n}" * 900 for n in range(7))]
    assert agent.findings(agent.record(evidence=lines[:1], detail={"process": "x\x00y"})).status_code == 200
    assert agent.findings(agent.record(2, evidence=lines)).status_code == 200
    row = records.findings()[0]
    assert row.evidence == [f"{n}" * 500 for n in range(2, 7)]


def test_a_nul_in_evidence_is_shown_as_unreadable(agent: Any, records: Any) -> None:
    agent.findings(agent.record(evidence=["a\x00b"], detail={"process": "x\x00y"}))
    row = records.findings()[0]
    assert (row.evidence, row.detail) == (["a\ufffdb"], {"process": "x\ufffdy"})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b'{"stream": ',
        b'{"stream": 1, "boot_id": "\xff\xfe"}',
        b'{"stream": 1, "boot_id": "\\ud800"}',
        b'{"stream": NaN}',
        b"[" * 100_000,
        b'{"records": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"\x00" * 100,
    ],
)
def test_what_is_not_a_message_is_refused(agent: Any, body: bytes) -> None:
    answer = agent.post("findings", content=body)
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_a_result_may_not_be_deep(agent: Any) -> None:
    deep = json.loads('{"a":' * 20 + "1" + "}" * 20)
    answer = agent.pulse(answers=[{"id": "q", "state": "done", "boot_id": "boot-1", "result": deep}])
    assert (answer.status_code, answer.json()["field"]) == (422, "answers[0].result")


def test_a_body_that_says_it_is_too_large_is_not_read(agent: Any) -> None:
    assert agent.post("findings", content=b"x" * (KIB * KIB)).status_code == 413


def test_a_body_without_end_is_cut_off(url: str, agent: Any) -> None:
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
        connection.sendall(_head(agent))
        status, sent = _pour(connection)
    assert status.startswith(b"HTTP/1.1 413")
    assert sent < 8 * KIB * KIB


def test_a_thousand_records_at_once_are_too_many(agent: Any) -> None:
    answer = agent.findings(*(agent.record(n, evidence=[], detail={}) for n in range(1, 202)))
    assert (answer.status_code, answer.json()["field"]) == (422, "records")


def _head(agent: Any) -> bytes:
    lines = (
        f"POST /v1/nodes/{agent.name}/findings HTTP/1.1",
        "Host: gateway",
        f"Authorization: Bearer {agent.token}",
        "Transfer-Encoding: chunked",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def _pour(connection: socket.socket) -> tuple[bytes, int]:
    """Send chunks until the other side has had enough; return its answer and how much it was sent."""
    connection.settimeout(0.05)
    sent = 0
    for chunk in _chunks():
        try:
            connection.sendall(chunk)
            sent += len(chunk)
            return connection.recv(64 * KIB), sent
        except TimeoutError:
            continue
        except OSError:
            break
    return b"cut off without an answer", sent


def _chunks() -> Iterator[bytes]:
    for _ in range(1000):
        yield b"10000\r\n" + b" " * 0x10000 + b"\r\n"


@pytest.fixture
def slow_gateway(gateway: Gateway) -> Gateway:
    gateway.requests = Buckets(Rate(burst=3, per_second=0.5), monotonic=lambda: 0.0)
    return gateway


def test_a_node_that_speaks_too_fast_is_told_when_to_try_again(slow_gateway: Gateway, agent: Any) -> None:
    answers = [agent.pulse() for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].headers["Retry-After"] == "2"


def test_a_bucket_fills_again_with_time() -> None:
    clock = iter([0.0, 0.0, 1.0, 2.0])
    bucket = Buckets(Rate(burst=1, per_second=0.5), monotonic=lambda: next(clock))
    assert [bucket.take("east", "gpu-01") for _ in range(4)] == [0, 2, 1, 0]


def test_one_nodes_haste_is_not_anothers(slow_gateway: Gateway) -> None:
    assert [slow_gateway.requests.take("east", "gpu-01") for _ in range(4)][-1] > 0
    assert slow_gateway.requests.take("east", "gpu-02") == 0


def test_a_burst_of_records_is_bounded_too(gateway: Gateway, agent: Any) -> None:
    gateway.records = Buckets(Rate(burst=2, per_second=1), monotonic=time.monotonic)
    assert agent.findings(agent.record(1), agent.record(2)).status_code == 200
    assert agent.findings(agent.record(3), agent.record(4)).status_code == 429
