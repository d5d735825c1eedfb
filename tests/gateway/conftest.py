"""A gateway as it runs: uvicorn on a free port, a store, a declared node with a token."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import uvicorn
from sqlmodel import col, select
from starlette.applications import Starlette

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.vocabulary import ClusterKind
from daytwo.gateway.app import Gateway, create_app
from daytwo.gateway.doors import PatientProtocol, open_doors
from daytwo.gateway.identity import issue_token
from daytwo.intake import declare
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRow

NODE = "gpu-01"
OTHER = "gpu-02"


@dataclass
class Time:
    """The server's clock, moved by hand."""

    now: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Agent:
    """One node's side of the wire, its messages built by hand."""

    http: httpx.Client
    token: str
    time: Time
    name: str = NODE
    boot_id: str = "boot-1"
    stream: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    def post(self, what: str, **content: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}", **self.headers}
        return self.http.post(f"/v1/nodes/{self.name}/{what}", headers=headers, **content)

    def findings(self, *records: dict[str, Any], **fields: Any) -> httpx.Response:
        body = {"stream": self.stream, "boot_id": self.boot_id, "clock": self.time().timestamp(), "records": records}
        answer = self.post("findings", json=body | fields)
        if answer.status_code == 200:
            self.stream = answer.json()["stream"]
        return answer

    def pulse(self, **fields: Any) -> httpx.Response:
        return self.post("pulse", json=self.pulse_body(**fields))

    def pulse_body(self, **fields: Any) -> dict[str, Any]:
        body = {
            "stream": self.stream,
            "sequence": 0,
            "boot_id": self.boot_id,
            "clock": self.time().timestamp(),
            "version": "0.1.0",
            "started_at": self.time().timestamp(),
            "identity": {"system_uuid": "4c4c4544", "serial": "S1", "product": "HGX"},
            "digest": "d1",
            "checks": {"kernel-log": "ok"},
            "inventory": None,
            "answers": [],
        }
        return body | fields

    def record(self, sequence: int = 1, fault: str = "xid-79", **fields: Any) -> dict[str, Any]:
        now = self.time().timestamp()
        record = {
            "sequence": sequence,
            "fault": fault,
            "entity": "GPU-1",
            "status": "firing",
            "count": 1,
            "first_seen": now,
            "last_seen": now,
            "source": "kernel-log",
            "boot_id": self.boot_id,
            "kernel_sequence": None,
            "evidence": ["NVRM: Xid 79"],
            "detail": {"xid": 79},
        }
        return record | fields


@dataclass
class Records:
    """What the store holds of the node."""

    store: Store
    name: str = NODE

    def node(self) -> NodeRow:
        with self.store.read() as session:
            return session.exec(select(NodeRow).where(NodeRow.name == self.name)).one()

    def findings(self) -> list[FindingRow]:
        with self.store.read() as session:
            query = select(FindingRow).where(FindingRow.node == self.name)
            return list(session.exec(query.order_by(col(FindingRow.id))))


@contextmanager
def serving(
    app: Starlette, *, per_address: int = 64, http: type[PatientProtocol] = PatientProtocol, **tls: str
) -> Iterator[str]:
    """Serve as the gateway's process does, on a free port; `tls`: the loop, and the files of certificate and key."""
    more: dict[str, Any] = {"log_config": None, "lifespan": "off", "ws": "none", "timeout_graceful_shutdown": 1}
    config = uvicorn.Config(app, http=http, **more, **tls)
    server = uvicorn.Server(config)
    with open_doors("127.0.0.1", 0, per_address=per_address) as doors:
        thread = threading.Thread(target=server.run, kwargs={"sockets": doors})
        thread.start()
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{doors[0].getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def now() -> Time:
    return Time()


@pytest.fixture
def declared(store: Store, now: Time) -> Store:
    group = NodeGroup(nodes=(NODE, OTHER), gpus=8)
    declare(store, ClusterDefinition(name="east", kind=ClusterKind.SLURM, groups=(group,)), now=now())
    return store


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Starlette:
    """Each test gives it a gateway of its own."""
    return create_app(Gateway(Store(f"sqlite:///{tmp_path_factory.mktemp('unused')}/unused.db")))


@pytest.fixture(scope="session")
def server_url(app: Starlette) -> Iterator[str]:
    with serving(app) as url:
        yield url


@pytest.fixture
def gateway(declared: Store, now: Time, app: Starlette) -> Gateway:
    app.state.gateway = Gateway(declared, now=now)
    return app.state.gateway


@pytest.fixture
def url(server_url: str, gateway: Gateway) -> str:
    return server_url


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=10, trust_env=False) as client:
        yield client


@pytest.fixture
def agent(http: httpx.Client, declared: Store, now: Time) -> Agent:
    return Agent(http, issue_token(declared, "east", NODE, now=now()), now)


@pytest.fixture
def records(declared: Store) -> Records:
    return Records(declared)
