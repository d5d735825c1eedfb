"""Evidence and quiet GPUs, over the API: for people with a role, and written down."""

from __future__ import annotations

import base64
from datetime import timedelta

import httpx
import pytest
from sqlmodel import select

from daytwo import node_requests
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, EvidenceRow, NodeRow
from tests.builders import NOW
from tests.rows import REPAIR, keep

FAR = NOW + timedelta(days=36_500)


def some(number: int, data: bytes | None, error: str = "") -> EvidenceRow:
    return EvidenceRow(
        id=f"{REPAIR}/{number}/collect-evidence",
        repair_id=REPAIR,
        cluster="east",
        node="gpu-07",
        at=NOW + timedelta(minutes=number),
        expires_at=FAR,
        sha256="ab" * 32 if data else "",
        size=len(data or b""),
        parts=[],
        data=data,
        error=error,
    )


def test_the_newest_archive_is_handed_out_and_that_is_written_down(client: httpx.Client, fleet: Store) -> None:
    keep(fleet, some(0, b"old"), some(1, b"new"), some(2, None, "its agent is silent"))
    answer = client.post("/v1/evidence", json={"repair": REPAIR})
    assert (answer.status_code, base64.b64decode(answer.json()["archive"])) == (200, b"new")
    with fleet.read() as session:
        acts = [(row.act, row.subject) for row in session.exec(select(AuditRow))]
    assert ("fetch-evidence", REPAIR) in acts


def test_a_repair_shows_what_there_is_without_the_archives(client: httpx.Client, fleet: Store) -> None:
    keep(fleet, some(0, b"old"), some(1, None, "its agent is silent"))
    shown = client.get(f"/v1/repairs/{REPAIR}").json()["evidence"]
    assert [(each["size"], each["error"]) for each in shown] == [(3, ""), (0, "its agent is silent")]
    assert "archive" not in str(shown)


def test_where_there_is_none_the_answer_says_where_to_look(client: httpx.Client) -> None:
    answer = client.post("/v1/evidence", json={"repair": REPAIR})
    assert (answer.status_code, "repairs show" in answer.json()["error"]) == (404, True)


def answer_quiet(fleet: Store, state: str, **result: object) -> None:
    with fleet.write() as session:
        node = session.get_one(NodeRow, ("east", "gpu-07"))
        node.boot_id = "boot-1"
        for asked in node_requests.offer(session, node, now=NOW):
            said = {"id": asked["id"], "state": state, "boot_id": "boot-1", "result": result, "error": ""}
            node_requests.answer(session, node, [said], now=NOW)


def test_an_agent_is_asked_to_let_go_and_what_it_said_is_told(client: httpx.Client, fleet: Store) -> None:
    body = {"node": "gpu-07", "seconds": 600, "reason": "a new driver"}
    asked = client.post("/v1/node-quiets", json=body)
    answer_quiet(fleet, "done", let_go=True, holders=["dcgm (7)"], error="", quiet_seconds=600)
    found = client.get(f"/v1/node-quiets/{asked.json()['id']}").json()
    assert (asked.status_code, found["state"], found["let_go"], found["holders"]) == (202, "done", True, ["dcgm (7)"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"node": "gpu-07", "seconds": 3601, "reason": "x"}, 422),
        ({"node": "gpu-07", "seconds": -1, "reason": "x"}, 422),
        ({"node": "gpu-07", "seconds": 60, "reason": ""}, 422),
        ({"node": "nobody", "seconds": 60, "reason": "x"}, 404),
    ],
)
def test_a_quiet_that_makes_no_sense_is_refused(client: httpx.Client, body: dict[str, object], status: int) -> None:
    assert client.post("/v1/node-quiets", json=body).status_code == status


def test_only_such_a_request_is_shown(client: httpx.Client, fleet: Store) -> None:
    other = node_requests.NodeRequest(id="r1", cluster="east", node="gpu-07", kind="probe-gpus", ttl_seconds=60)
    node_requests.ask(fleet, other, now=NOW)
    assert client.get("/v1/node-quiets/r1").status_code == 404
