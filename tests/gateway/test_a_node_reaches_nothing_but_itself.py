"""A node speaks as itself, about itself: it never sees or changes another's data, and never approves anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlmodel import select
from starlette.applications import Starlette
from starlette.routing import Route

from daytwo import node_requests
from daytwo.gateway.identity import issue_token
from daytwo.node_requests import NodeRequest
from daytwo.store import tables
from daytwo.store.engine import Store
from tests.gateway.conftest import OTHER, Agent, Records
from tests.rows import keep

SECRET = "planted-7f3a"
OURS = f"/v1/nodes/{OTHER}"
PATHS = (
    *("/v1/decisions", "/v1/repairs", "/v1/clusters", "/v1/tokens", "/v1/freezes", "/v1/audit", "/v1/nodes"),
    *(f"{OURS}/findings", f"{OURS}/pulse", f"{OURS}/../gpu-01/pulse", "/v1/nodes/gpu-01%2f..%2fgpu-02/pulse"),
    *(f"/v1/nodes/gpu-01/../{OTHER}/pulse", f"/v1/nodes/east/{OTHER}/pulse", "//v1/nodes/gpu-02/pulse"),
)


@pytest.fixture
def other(http: httpx.Client, declared: Store, now: Any) -> Agent:
    """The other node, which says what nobody else may read."""
    agent = Agent(http, issue_token(declared, "east", OTHER, now=now()), now, name=OTHER, boot_id=SECRET)
    agent.findings(agent.record(evidence=[SECRET], detail={"process": SECRET}))
    agent.pulse(identity={"serial": SECRET}, digest=SECRET)
    ask = {"cluster": "east", "node": OTHER, "kind": "probe-gpus", "ttl_seconds": 60}
    node_requests.ask(declared, NodeRequest(id=SECRET, **ask), now=now())
    return agent


def said_to(agent: Agent) -> Iterator[httpx.Response]:
    """Everything that a node can get the gateway to say."""
    yield agent.findings(agent.record())
    yield agent.pulse(answers=[{"id": SECRET, "state": "done", "boot_id": agent.boot_id, "result": {}}])
    yield from (agent.http.get(path) for path in ("/metrics", "/readyz", "/healthz", "/openapi.json"))
    headers = {"Authorization": f"Bearer {agent.token}"}
    for path in PATHS:
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            yield agent.http.request(method, path, headers=headers, json=agent.pulse_body())


def test_a_node_never_sees_anothers_data(agent: Agent, other: Agent) -> None:
    answers = list(said_to(agent))
    assert {200, 403, 404} <= {answer.status_code for answer in answers}
    assert [answer.url for answer in answers if SECRET in answer.text or SECRET in str(answer.headers)] == []


def test_a_node_never_changes_what_is_known_of_another(agent: Agent, other: Agent, declared: Store) -> None:
    theirs = Records(declared, OTHER)
    before = (theirs.node().model_dump(), [row.model_dump() for row in theirs.findings()])
    list(said_to(agent))
    assert (theirs.node().model_dump(), [row.model_dump() for row in theirs.findings()]) == before


def test_a_node_cannot_answer_what_another_was_asked(agent: Agent, other: Agent, declared: Store, now: Any) -> None:
    list(said_to(agent))
    assert node_requests.answer_for(declared, SECRET, now=now()).state == "open"


def test_a_node_cannot_approve(agent: Agent, declared: Store, now: Any) -> None:
    keep(declared, tables.RepairRow(id="r-1", cluster="east", node="gpu-01", state_since=now(), opened_at=now()))
    approval = {"repair_id": "r-1", "revision": 1, "kind": "approve", "reason": "me", "request_id": "q"}
    headers = {"Authorization": f"Bearer {agent.token}"}
    asked = [agent.http.post(path, headers=headers, json=approval) for path in PATHS]
    agent.pulse(answers=[{"id": "q", "state": "done", "boot_id": "boot-1", "result": approval}])
    agent.findings(agent.record(evidence=[json.dumps(approval)], detail={"kind": "approve", "repair": "r-1"}))
    assert not any(answer.is_success for answer in asked)
    assert rows_of(declared, tables.DecisionRow) == rows_of(declared, tables.IntentRow) == []


def rows_of(store: Store, table: Any) -> list[Any]:
    with store.read() as session:
        return list(session.exec(select(table)))


def test_the_gateway_serves_nodes_and_nothing_else(app: Starlette) -> None:
    served = {route.path: route.methods for route in app.routes if isinstance(route, Route)}
    asked = {"/v1/nodes/{node}/findings": {"POST"}, "/v1/nodes/{node}/pulse": {"POST"}}
    assert served == asked | {path: {"GET", "HEAD"} for path in ("/healthz", "/readyz", "/metrics")}
    assert len(served) == len(app.routes)


def test_a_message_that_is_replayed_changes_nothing(agent: Agent, records: Records) -> None:
    """Somebody who wrote a message down cannot bring back with it what has ended since."""
    reading = {"fault": "recovery-action", "entity": "GPU-1"}
    agent.findings()
    agent.findings(agent.record(1, **reading))
    agent.findings(agent.record(2, status="cleared", **reading))
    replayed = [agent.findings(agent.record(1, **reading)).status_code for _ in range(3)]
    assert replayed == [200] * 3
    assert [(row.status, row.count) for row in records.findings()] == [("cleared", 1)]


def test_a_message_of_an_older_stream_is_refused(agent: Agent, records: Records) -> None:
    agent.findings(agent.record(1))
    agent.findings(stream=0)
    assert agent.findings(agent.record(2, "xid-48"), stream=1).status_code == 409
    assert [row.fault for row in records.findings()] == ["xid-79"]
