"""The deciding half of the API, over the real socket, and how errors are told."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from daytwo.gateway.identity import hash_of, identify
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, NodeRow
from tests.rows import REPAIR, a_definition, keep
from tests.rows import a_node as node_row
from tests.service.conftest import connected
from tests.serving import Away, Repairer, post_as_stranger, served

ME = f"cli:{pwd.getpwuid(os.geteuid()).pw_name}"


def a_request(**fields: Any) -> dict[str, Any]:
    values = {"request_id": "cli-00000001", "repair_id": REPAIR, "revision": 2, "kind": "approve"}
    return values | fields


def test_a_decision_is_answered_at_once_and_delivered(client: httpx.Client, repairer: Repairer) -> None:
    made = client.post("/v1/decisions", json=a_request())
    ended = client.get(f"/v1/decisions/{made.json()['id']}?wait=20").json()
    assert (made.status_code, made.json()["status"], ended["status"]) == (202, "pending", "accepted")


def test_a_decision_is_kept_when_temporal_is_away(fleet: Store, tmp_path: Path) -> None:
    with served(fleet, tmp_path / "s", Away()) as socket, connected(socket) as http:
        made = http.post("/v1/decisions", json=a_request())
        kept = http.get(f"/v1/decisions/{made.json()['id']}?wait=0.2").json()
    assert (made.status_code, kept["status"]) == (202, "pending")


@pytest.mark.parametrize(
    ("fields", "status", "kind"),
    [
        ({"repair_id": "r-nowhere"}, 404, "NotFound"),
        ({"revision": 1}, 409, "Stale"),
        ({"kind": "dismiss"}, 422, "BadInput"),
        ({"kind": "nod"}, 422, "BadInput"),
        ({"request_id": "x"}, 422, "BadInput"),
    ],
)
def test_an_error_carries_its_type_and_exit_code(
    client: httpx.Client, fields: dict[str, Any], status: int, kind: str
) -> None:
    answer = client.post("/v1/decisions", json=a_request(**fields))
    body = answer.json()
    assert (answer.status_code, body["type"]) == (status, kind)
    assert body["exit_code"] == {404: 3, 409: 5, 422: 2}[status]


def test_bad_input_names_the_field_what_was_found_and_what_is_allowed(client: httpx.Client) -> None:
    body = client.post("/v1/decisions", json=a_request(kind="nod")).json()
    assert body["field"] == "kind"
    assert body["error"].startswith("kind: found 'nod'; allowed is 'approve', ")


def test_a_body_that_is_not_json_is_bad_input(client: httpx.Client) -> None:
    answer = client.post("/v1/decisions", content=b"\x00{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["type"]) == (422, "BadInput")


def test_a_path_that_is_not_there_is_told_in_the_same_form(client: httpx.Client) -> None:
    assert client.get("/v1/nothing").json() == {"error": "Not Found", "type": "HTTP", "exit_code": 3}


def test_every_path_is_described(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/v1/decisions", "/v1/repairs/{repair_id}", "/v1/audit/verify"} <= set(paths)
    assert all(
        "Problem" in str(call["responses"]["404"])
        for path, calls in paths.items()
        if path != "/healthz"
        for call in calls.values()
    )


# Freeze and thaw


def freeze(client: httpx.Client, scope: str = "east", reason: str = "storm") -> httpx.Response:
    return client.post("/v1/freezes", json={"scope": scope, "reason": reason})


def thaw(client: httpx.Client, scope: str = "east", reason: str = "over") -> httpx.Response:
    return client.post("/v1/thaws", json={"scope": scope, "reason": reason})


@pytest.mark.parametrize("scope", ["*", "east", "east/gpu-07"])
def test_a_freeze_holds_until_it_is_thawed(client: httpx.Client, scope: str) -> None:
    freeze(client, scope)
    during = client.get("/v1/freezes").json()["items"]
    thaw(client, scope)
    assert ([row["scope"] for row in during], client.get("/v1/freezes").json()["items"]) == ([scope], [])


@pytest.mark.parametrize("scope", ["west", "east/gpu-99", "gpu-07", ""])
def test_a_scope_that_is_not_known_cannot_be_frozen(client: httpx.Client, scope: str) -> None:
    assert freeze(client, scope).status_code == 404


def test_a_freeze_of_a_node_stands_under_the_name_that_acts_look_up(client: httpx.Client) -> None:
    assert freeze(client, "/gpu-07").json()["scope"] == "east/gpu-07"


@pytest.mark.parametrize("act", [freeze, thaw])
def test_freeze_and_thaw_need_a_reason(client: httpx.Client, act: Any) -> None:
    assert act(client, reason=" ").json()["field"] == "reason"


def test_a_second_freeze_of_a_scope_joins_the_one_that_stands(client: httpx.Client) -> None:
    first, second = freeze(client).json(), freeze(client, reason="smoke").json()
    assert ([first["again"], second["again"]], second["at"]) == ([False, True], first["at"])
    assert [row["id"] for row in client.get("/v1/freezes").json()["items"]] == [first["id"]]
    assert second["reason"] == f"storm; also {ME}: smoke"


def test_the_same_freeze_again_adds_nothing(client: httpx.Client) -> None:
    freeze(client)
    assert freeze(client).json()["reason"] == "storm"


def test_thawing_what_is_not_frozen_is_not_found(client: httpx.Client) -> None:
    freeze(client, "*")
    assert thaw(client, "east").status_code == 404


def test_a_thaw_has_every_node_of_its_scope_looked_at_again(fleet: Store, client: httpx.Client) -> None:
    keep(fleet, node_row("gpu-08", cluster="west"))
    freeze(client)
    thaw(client)
    with fleet.read() as session:
        assert [session.get_one(NodeRow, key).due for key in (("east", "gpu-07"), ("west", "gpu-08"))] == [1, 0]


def test_freeze_and_thaw_are_audited(fleet: Store, client: httpx.Client) -> None:
    freeze(client)
    thaw(client)
    with fleet.read() as session:
        assert [session.get_one(AuditRow, n).act for n in (1, 2)] == ["freeze", "thaw"]


# Administration: the test's user is the owner here, and a stranger there


@pytest.fixture
def owned(fleet: Store, tmp_path: Path) -> Iterator[httpx.Client]:
    with served(fleet, tmp_path / "o", Away(), owner=ME) as socket, connected(socket) as http:
        yield http


def test_a_token_lets_the_node_in(fleet: Store, owned: httpx.Client) -> None:
    issued = owned.post("/v1/tokens", json={"node": "gpu-07"}).json()
    named = identify(fleet, hash_of(f"Bearer {issued['token']}") or "")
    assert named is not None
    assert (named.cluster, named.node) == ("east", "gpu-07")


def test_a_token_is_never_in_the_audit(fleet: Store, owned: httpx.Client) -> None:
    issued = owned.post("/v1/tokens", json={"node": "gpu-07"}).json()
    rows = owned.get("/v1/audit").text
    assert "issue-token" in rows
    assert issued["token"] not in rows


def test_a_revoked_token_lets_nobody_in(fleet: Store, owned: httpx.Client) -> None:
    issued = owned.post("/v1/tokens", json={"node": "gpu-07"}).json()
    assert owned.post("/v1/revocations", json={"node": "gpu-07"}).json()["revoked"] == 1
    assert identify(fleet, hash_of(f"Bearer {issued['token']}") or "") is None


def test_a_token_for_an_unknown_node_is_not_found(owned: httpx.Client) -> None:
    assert owned.post("/v1/tokens", json={"node": "gpu-99"}).status_code == 404


def test_a_cluster_is_declared_and_audited(owned: httpx.Client) -> None:
    applied = owned.post(
        "/v1/clusters", json=a_definition("north", groups=[{"nodes": ["n-[1-3]"]}]).model_dump(mode="json")
    )
    assert (applied.status_code, sum(applied.json()["nodes"].values())) == (200, 3)
    assert owned.get("/v1/audit").json()["items"][0]["act"] == "apply-cluster"


def test_a_cluster_that_is_not_declared_leaves_no_audit_row(fleet: Store, owned: httpx.Client) -> None:
    taken = a_definition("north", groups=[{"nodes": ["gpu-07"]}]).model_dump(mode="json")
    refused = owned.post("/v1/clusters", json=taken)
    assert (refused.status_code, owned.get("/v1/audit").json()["items"]) == (422, [])


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"faults": {"xid-7x": {"mode": "record"}}}, "policy.faults.xid-7x: found 'xid-7x'"),
        ({"approval": {"beyond_workers": ["leed"]}}, "policy.approval.beyond_workers[0]: found 'leed', allowed: lead"),
        ({"approval": {"roles": {"lead": ["rebot"]}}}, "policy.approval.roles.lead[0]: found 'rebot', allowed: reboot"),
    ],
    ids=["fault", "role", "action"],
)
def test_a_name_that_nothing_has_is_refused_past_the_cli_too(
    owned: httpx.Client, policy: dict[str, Any], says: str
) -> None:
    answer = owned.post("/v1/clusters", json=a_definition("north").model_dump(mode="json") | {"policy": policy})
    assert (answer.status_code, answer.json()["error"][: len(says)]) == (422, says)


@pytest.mark.parametrize(("kind", "says"), [("slurm", "which cannot change"), ("kubernetes", "slurm or simulated")])
def test_a_cluster_keeps_its_kind(owned: httpx.Client, kind: str, says: str) -> None:
    body = a_definition().model_dump(mode="json") | {"kind": kind}
    answer = owned.post("/v1/clusters", json=body)
    assert (answer.status_code, owned.get("/v1/audit").json()["items"]) == (422, [])
    assert says in answer.json()["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/tokens", {"node": "gpu-07"}),
        ("/v1/revocations", {"node": "gpu-07"}),
        ("/v1/clusters", a_definition("north").model_dump(mode="json")),
    ],
)
def test_a_stranger_may_not_administer(open_socket: Path, path: str, body: dict[str, Any]) -> None:
    status, answer = post_as_stranger(open_socket, path, body)
    assert (status, answer["type"]) == (403, "Refused")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_stranger_may_freeze_and_end_only_his_own_freeze(client: httpx.Client, open_socket: Path) -> None:
    mine = post_as_stranger(open_socket, "/v1/freezes", {"scope": "east/gpu-07", "reason": "smoke"})
    freeze(client, "east")
    thawed = [
        post_as_stranger(open_socket, "/v1/thaws", {"scope": scope, "reason": "over"})[0]
        for scope in ("east/gpu-07", "east")
    ]
    assert (mine[0], thawed) == (201, [200, 403])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_freeze_that_somebody_else_wants_too_is_not_ended_by_who_froze_first(
    client: httpx.Client, open_socket: Path
) -> None:
    post_as_stranger(open_socket, "/v1/freezes", {"scope": "east", "reason": "smoke"})
    freeze(client)
    status, answer = post_as_stranger(open_socket, "/v1/thaws", {"scope": "east", "reason": "over"})
    assert (status, answer["type"], f"east is frozen by {ME}: " in answer["error"]) == (403, "Refused", True)


def test_a_body_that_is_too_long_is_refused_while_it_comes(client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(1000):
            yield b" " * 65536

    answer = client.post("/v1/clusters", content=endless(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["exit_code"]) == (413, 2)


@pytest.mark.parametrize("body", [b"\xff", b'{"scope": "\xff"}', b"[" * 100_000, b'{"scope": "\\ud800"}'])
def test_a_body_that_is_no_json_is_bad_input(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/v1/thaws", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["type"]) == (422, "BadInput")
