"""The service as a process of its own, with no Temporal anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.service.local_socket import listen
from daytwo.store.engine import Store
from tests.rows import REPAIR, a_cluster, a_node, a_repair, keep
from tests.service.conftest import connected

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "workers.service"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "DAYTWO_STATE_DIR": str(tmp_path), "TEMPORAL_ADDRESS": "127.0.0.1:1"}


@pytest.fixture
def process(tmp_path: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(COMMAND, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as running:
        give_up = time.monotonic() + 30
        while not (tmp_path / "service.sock").exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        yield running
        running.kill()


def test_it_keeps_decisions_without_temporal_and_stops_in_order(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    store = Store(f"sqlite:///{tmp_path}/daytwo.db")
    keep(store, a_cluster(), a_node(), a_repair())
    store.close()
    body = {"request_id": "cli-00000001", "repair_id": REPAIR, "revision": 2, "kind": "approve"}
    with connected(tmp_path / "service.sock") as http:
        made = http.post("/v1/decisions", json=body)
    process.send_signal(signal.SIGTERM)
    assert (made.status_code, process.wait(20)) == (202, 0)


def test_a_second_one_says_that_there_is_one(process: subprocess.Popen[bytes], environment: dict[str, str]) -> None:
    second = subprocess.run(COMMAND, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (second.returncode, process.poll()) == (4, None)
    assert "another service is already listening" in second.stderr


def test_a_socket_that_was_deleted_is_there_again_within_seconds(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    socket = tmp_path / "service.sock"
    socket.unlink()
    give_up = time.monotonic() + 5
    while not socket.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    with connected(socket) as http:
        assert (http.get("/v1/repairs").status_code, process.poll()) == (200, None)


def test_one_whose_socket_another_service_took_ends(
    process: subprocess.Popen[bytes], tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "service.sock").unlink()
    with listen(tmp_path / "service.sock"):
        assert process.wait(20) == 4


def test_a_store_that_comes_back_newer_ends_it(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "elsewhere").mkdir()
    newer = Store(f"sqlite:///{tmp_path}/elsewhere/daytwo.db")
    newer.migrate()
    with newer.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    newer.close()
    away = {**environment, "DAYTWO_STORE_URL": f"sqlite:///{tmp_path}/away/daytwo.db"}
    with subprocess.Popen(COMMAND, cwd=ROOT, env=away, stderr=subprocess.PIPE, text=True) as running:
        give_up = time.monotonic() + 30
        while not (tmp_path / "service.sock").exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        (tmp_path / "elsewhere").rename(tmp_path / "away")
        try:
            said = running.communicate(timeout=30)[1]
        finally:
            running.kill()
    assert (running.returncode, "its tables are at revision 9999" in said) == (9, True)
