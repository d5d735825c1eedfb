"""Health, readiness, metrics, and the process itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from daytwo import settings
from daytwo.domain.errors import BadInput
from daytwo.store.engine import Store
from workers.gateway import serve


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_working_gateway_says_so(http: httpx.Client, path: str) -> None:
    assert http.get(path).status_code == 200


def test_a_gateway_without_its_store_lives_and_is_not_ready(http: httpx.Client, declared: Store, agent: Any) -> None:
    with declared.write() as session:
        session.execute(text("ALTER TABLE nodes RENAME TO elsewhere"))
    assert [http.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 503]
    answer = agent.pulse()
    assert (answer.status_code, answer.json()["error"]) == (503, "the store does not answer")


def test_metrics_count_what_was_done(http: httpx.Client, agent: Any) -> None:
    agent.pulse()
    agent.findings()
    agent.findings(agent.record(1), agent.record(2))
    agent.findings(agent.record(2))
    agent.findings({})
    told = http.get("/metrics").text.splitlines()
    assert {'daytwo_gateway_requests_total{code="200"} 4', 'daytwo_gateway_requests_total{code="422"} 1'} <= set(told)
    for result, number in (("accepted", 2), ("duplicate", 1), ("refused", 1)):
        assert f'daytwo_gateway_records_total{{result="{result}"}} {number}' in told
    assert "daytwo_gateway_pulses_total 1" in told


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/v1/nodes/gpu-01"])
def test_nothing_else_is_served(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert (answer.status_code, answer.json()["error"]) == (404, "Not Found")


@pytest.fixture
def process(store_url: str, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    environ = {"DAYTWO_STATE_DIR": str(tmp_path), "DAYTWO_STORE_URL": store_url, "DAYTWO_GATEWAY_URL": url}
    started = subprocess.Popen([sys.executable, "-m", "workers.gateway"], env={**os.environ, **environ})
    yield started, url
    started.kill()
    started.wait()


def test_the_process_serves_and_stops_when_told(process: tuple[subprocess.Popen[bytes], str]) -> None:
    started, url = process
    assert _answers(f"{url}/readyz")
    started.send_signal(signal.SIGTERM)
    assert started.wait(15) in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("name", "found"), [("DAYTWO_PULSE_SECONDS", "soon"), ("DAYTWO_GATEWAY_TLS_CERT", "/nowhere/cert.pem")]
)
def test_a_wrong_setting_is_named(tmp_path: Path, name: str, found: str) -> None:
    environ = {"DAYTWO_STATE_DIR": str(tmp_path), name: found}
    with pytest.raises(BadInput, match=f"{name}: found {found!r}; allowed is"):
        serve(settings.load(environ), environ)


@pytest.mark.parametrize("missing", ["CERT", "KEY"])
def test_https_without_a_certificate_is_refused_at_once(tmp_path: Path, missing: str) -> None:
    file = tmp_path / "pem"
    file.touch()
    environ = {"DAYTWO_STATE_DIR": str(tmp_path), "DAYTWO_GATEWAY_URL": "https://127.0.0.1:8460"}
    environ |= {f"DAYTWO_GATEWAY_TLS_{what}": str(file) for what in {"CERT", "KEY"} - {missing}}
    with pytest.raises(BadInput, match=f"DAYTWO_GATEWAY_TLS_{missing}: found nothing, .*; allowed is a PEM file"):
        serve(settings.load(environ), environ)


def test_a_certificate_without_https_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pem"
    file.touch()
    environ = {"DAYTWO_STATE_DIR": str(tmp_path), "DAYTWO_GATEWAY_TLS_CERT": str(file)}
    with pytest.raises(BadInput, match=r"DAYTWO_GATEWAY_TLS_CERT: found .*, with DAYTWO_GATEWAY_URL=http://"):
        serve(settings.load(environ), environ)


def _answers(url: str) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            return httpx.get(url, trust_env=False).status_code == 200
        except httpx.TransportError:
            time.sleep(0.1)
    return False
