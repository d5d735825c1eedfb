"""The reading half of the API, over the real socket."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from daytwo.store.engine import Store
from daytwo.store.tables import (
    CheckResultRow,
    CheckRunRow,
    DecisionRow,
    FreezeRow,
    IntentRow,
    LeaseRow,
    NodeTransitionRow,
)
from tests.builders import NOW
from tests.rows import REPAIR, a_cluster, a_finding_row, a_node, a_repair, an_event, hear_all, keep


def ids(client: httpx.Client, path: str, key: str = "id") -> list[Any]:
    return [item[key] for item in client.get(path).json()["items"]]


def test_open_repairs_can_be_told_from_ended_ones(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, a_repair("r-20261129-100000-aaaaa", open_key=None, state="succeeded"))
    assert ids(client, "/v1/repairs") == [REPAIR, "r-20261129-100000-aaaaa"]
    assert ids(client, "/v1/repairs?open_only=true") == [REPAIR]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("state=proposed", 1),
        ("state=held", 0),
        ("state=held&state=proposed", 1),
        ("node=gpu-07", 1),
        ("node=east/gpu-07", 1),
        ("node=gpu-08", 0),
        ("cluster=east", 1),
        ("cluster=west", 0),
    ],
)
def test_repairs_are_filtered(fleet: Store, client: httpx.Client, query: str, count: int) -> None:
    keep(fleet, a_node("gpu-08"), a_cluster("west"))
    assert len(ids(client, f"/v1/repairs?{query}")) == count


@pytest.mark.parametrize("path", ["/v1/repairs?state=helt", "/v1/nodes?state=sick", "/v1/findings?state=on"])
def test_a_misspelt_state_is_bad_input_and_not_an_empty_list(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["field"]) == (422, "state")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/repairs/r-nowhere",
        "/v1/repairs?node=nowhere",
        "/v1/repairs?cluster=nowhere",
        "/v1/nodes/nowhere",
        "/v1/nodes/west/gpu-07",
        "/v1/nodes?cluster=nowhere",
        "/v1/findings?node=nowhere",
        "/v1/faults/nothing",
        "/v1/decisions/d-nowhere",
        "/v1/repairs/r-nowhere/progress",
    ],
)
def test_what_is_not_there_is_not_found(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["exit_code"]) == (404, 3)


@pytest.mark.parametrize("path", ["/v1/nodes", "/v1/repairs", "/v1/findings"])
def test_a_list_is_bounded_and_can_be_continued(fleet: Store, client: httpx.Client, path: str) -> None:
    keep(fleet, a_node("gpu-08"), a_node("gpu-09"), a_finding_row("xid-48"), a_finding_row(), a_finding_row("xid-63"))
    keep(fleet, *(a_repair(f"r-20261129-10000{n}-aaaaa", open_key=None) for n in (1, 2)))
    first = client.get(path, params={"limit": 2}).json()
    second = client.get(path, params={"limit": 2, "after": first["next"]}).json()
    assert (len(first["items"]), len(second["items"]), second["next"]) == (2, 1, None)


def test_a_limit_has_a_limit(client: httpx.Client) -> None:
    assert client.get("/v1/nodes?limit=1001").json()["field"] == "limit"


def test_a_repair_tells_its_whole_story(fleet: Store, client: httpx.Client) -> None:
    run = CheckRunRow(id="c-1", cluster="east", node="gpu-07", repair_id=REPAIR, started_at=NOW, passed=True)
    times = {"created_at": NOW, "updated_at": NOW}
    intent = IntentRow(
        id="i-1", repair_id=REPAIR, cluster="east", node="gpu-07", driver="slurm", kind="drain", target="x", **times
    )
    decision = DecisionRow(
        id="d-1",
        request_id="q",
        repair_id=REPAIR,
        revision=2,
        kind="hold",
        actor="cli:a",
        channel="cli",
        verified=True,
        at=NOW,
    )
    keep(
        fleet,
        an_event(2),
        an_event(1),
        run,
        CheckResultRow(run_id="c-1", name="gpu-count", result="passed"),
        intent,
        decision,
    )
    told = client.get(f"/v1/repairs/{REPAIR}").json()
    assert [event["number"] for event in told["timeline"]] == [1, 2]
    assert (told["decisions"][0]["id"], told["intents"][0]["kind"]) == ("d-1", "drain")
    assert told["checks"][0]["results"][0]["name"] == "gpu-count"


def test_a_repair_is_told_in_the_words_of_its_proposal(client: httpx.Client) -> None:
    told = client.get(f"/v1/repairs/{REPAIR}").json()
    assert f"daytwo repairs approve {REPAIR} --revision 2" in told["message"]


def test_a_proposal_of_an_older_version_does_not_hide_the_repair(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, a_repair("r-20261129-100000-aaaaa", open_key=None, proposal={"title": "old"}))
    assert client.get("/v1/repairs/r-20261129-100000-aaaaa").json()["message"] == "old"


def test_progress_waits_for_the_next_event(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, an_event(1), an_event(2))
    assert client.get(f"/v1/repairs/{REPAIR}/progress?after=1&wait=20").json()["events"][0]["number"] == 2


def test_progress_of_an_ended_repair_does_not_wait(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, a_repair("r-20261129-100000-aaaaa", open_key=None, state="succeeded"))
    told = client.get("/v1/repairs/r-20261129-100000-aaaaa/progress?wait=30", timeout=5).json()
    assert (told["open"], told["state"]) == (False, "succeeded")


def test_a_node_shows_what_fires_and_what_is_done_about_it(fleet: Store, client: httpx.Client) -> None:
    moved = NodeTransitionRow(cluster="east", node="gpu-07", from_state="healthy", to_state="pending", at=NOW)
    keep(fleet, a_finding_row(), a_finding_row("xid-48", status="cleared", cleared_at=NOW), moved)
    told = client.get("/v1/nodes/gpu-07").json()
    assert (told["firing"], told["repair"]) == (["xid-79"], REPAIR)
    assert [finding["fault"] for finding in told["findings"]] == ["xid-79", "xid-48"]
    assert told["transitions"][0]["to_state"] == "pending"


def test_a_name_that_two_clusters_have_is_asked_for_in_full(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, a_node(cluster="west"))
    answer = client.get("/v1/nodes/gpu-07")
    assert (answer.status_code, answer.json()["field"]) == (422, "node")
    assert "east/gpu-07, west/gpu-07" in answer.json()["error"]


def test_findings_are_filtered_by_fault(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, a_finding_row(), a_finding_row("xid-48"))
    assert ids(client, "/v1/findings?fault=xid-48", "fault") == ["xid-48"]


def test_the_catalogue_has_every_fault_with_its_source(client: httpx.Client) -> None:
    faults = client.get("/v1/faults").json()["items"]
    assert "xid-79" in {fault["id"] for fault in faults}
    assert all(fault["source"] for fault in faults)


def test_an_xid_without_an_entry_is_an_unknown_code(client: httpx.Client) -> None:
    assert client.get("/v1/faults/xid-4242").json()["xid"] == 4242


def a_lease(**fields: Any) -> LeaseRow:
    return LeaseRow(**{"name": "reconcile", "holder": "here", "expires_at": NOW + timedelta(days=36500)} | fields)


@pytest.mark.parametrize(
    ("rows", "healthy"),
    [
        ([a_lease], True),
        ([], False),
        ([lambda: a_lease(expires_at=NOW - timedelta(days=1))], False),
        ([a_lease, lambda: a_node("gpu-08", state="unknown")], False),
        ([a_lease, lambda: FreezeRow(scope="*", reason="x", actor="a", at=NOW)], False),
    ],
)
def test_the_status_is_healthy_only_when_everything_is_known_to_be(
    fleet: Store, client: httpx.Client, rows: list[Any], healthy: bool
) -> None:
    keep(fleet, *(make() for make in rows))
    hear_all(fleet)
    assert client.get("/v1/status").json()["healthy"] is healthy


def test_without_nodes_nothing_is_healthy(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, a_lease())
    with fleet.write() as session:
        session.delete(session.get_one(type(a_node()), ("east", "gpu-07")))
    assert client.get("/v1/status").json()["healthy"] is False
