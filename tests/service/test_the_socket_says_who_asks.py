"""The Unix socket: identity from the kernel, and one service at a time."""

from __future__ import annotations

import os
import pwd
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from daytwo.domain.errors import Refused
from daytwo.service.app import create_app
from daytwo.service.local_socket import actor_of, listen
from daytwo.store.engine import Store
from tests.rows import REPAIR
from tests.serving import STRANGER_UID, Repairer, post_as_stranger, served

ME = f"cli:{pwd.getpwuid(os.geteuid()).pw_name}"
HOLD: dict[str, Any] = {"request_id": "cli-00000001", "repair_id": REPAIR, "revision": 2, "kind": "hold"}


def test_a_decision_carries_the_unix_user_who_made_it(client: httpx.Client) -> None:
    made = client.post("/v1/decisions", json=HOLD).json()
    assert (made["actor"], made["channel"], made["verified"]) == (ME, "cli", True)


@pytest.mark.parametrize(
    "headers", [{"X-Forwarded-For": "10.0.0.1"}, {"Forwarded": "for=cli:lea"}, {"X-Remote-User": "lea"}]
)
def test_a_header_cannot_change_who_asks(client: httpx.Client, headers: dict[str, str]) -> None:
    assert client.post("/v1/decisions", json=HOLD, headers=headers).json()["actor"] == ME


def test_the_body_cannot_say_who_asks(client: httpx.Client) -> None:
    answer = client.post("/v1/decisions", json=HOLD | {"actor": "cli:lea"})
    assert (answer.status_code, answer.json()["field"]) == (422, "actor")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_another_user_is_somebody_else(open_socket: Path) -> None:
    _, made = post_as_stranger(open_socket, "/v1/decisions", HOLD)
    assert made["actor"] == f"cli:uid-{STRANGER_UID}"


async def test_a_request_that_came_another_way_has_no_identity(fleet: Store, repairer: Repairer) -> None:
    app: FastAPI = create_app(fleet, delivery=repairer, owner=ME)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://tcp") as elsewhere:
        answer = await elsewhere.get("/v1/repairs")
    assert (answer.status_code, answer.json()["type"]) == (403, "Refused")


def test_a_user_without_a_name_is_a_number() -> None:
    assert actor_of(4_000_000_000) == "cli:uid-4000000000"


def test_the_socket_is_for_its_owner_and_its_group(tmp_path: Path) -> None:
    with listen(tmp_path / "s"):
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o660


CONNECT = """
import os, socket, sys
os.chdir(sys.argv[1])
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[2]))
socket.socket(socket.AF_UNIX).connect("s")
"""
GROUP = STRANGER_UID + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize(
    ("uid", "gid", "code"), [(STRANGER_UID, 65534, 1), (STRANGER_UID, GROUP, 0), (STRANGER_UID + 2, 65534, 0)]
)
def test_owner_and_group_may_connect_and_nobody_else(open_socket: Path, uid: int, gid: int, code: int) -> None:
    os.chown(open_socket, STRANGER_UID + 2, GROUP)
    command = [sys.executable, "-c", CONNECT, str(open_socket.parent), str(uid), str(gid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "PermissionError" in done.stderr) == (code, code == 1)


def test_a_second_service_does_not_take_the_socket_of_a_live_one(
    fleet: Store, repairer: Repairer, tmp_path: Path
) -> None:
    with served(fleet, tmp_path / "s", repairer), pytest.raises(Refused, match="already listening"):
        listen(tmp_path / "s")


def test_a_socket_that_a_dead_service_left_is_taken_over(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))
    listen(tmp_path / "s").close()
    assert (tmp_path / "s").is_socket()
