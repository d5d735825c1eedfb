"""A BMC that can misbehave, one that is the sushy emulator, and the driver before them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from daytwo.domain.definition import BmcAccess
from daytwo.domain.seams import Act, ActKind, HttpsRequest, Look, NodeFacts, Ownership
from daytwo.domain.vocabulary import Mark
from daytwo.hardware.redfish import RedfishHardware
from daytwo.hardware.redfish_memory import Memory
from daytwo.sending import Sender, Sent
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from tests.redfish.bmc import PASSWORD, SERIAL, UUID, Bmc, serving

REPAIR = "r-20261130-030000-aaaaa"
NODE = "gpu-001"
IDENTITY = {"system_uuid": UUID, "serial": SERIAL, "product": "XE9680"}


class Clock:
    """The time, which can be moved on."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Marks:
    """The scheduler as far as the driver asks it: whose the node is."""

    ownership: Ownership = Ownership.OURS
    repair_id: str = REPAIR
    busy: bool = False

    async def node(self, node: str) -> NodeFacts:
        return NodeFacts(
            node=node,
            states=("IDLE", "DRAIN"),
            reason="told",
            ownership=self.ownership,
            mark_repair_id=self.repair_id,
            busy=self.busy,
            at=datetime.now(UTC),
        )


@dataclass
class Desk:
    """All that a test may turn: the BMC, the scheduler's marks, the clock, what the agent said, and the driver."""

    bmc: Bmc
    access: BmcAccess
    store: Store
    marks: Marks
    clock: Clock
    declared_at: datetime
    options: dict[str, Any]

    def memory(self) -> Memory:
        return Memory(self.store, "east", self.declared_at, clock=self.clock)

    def driver(self, *more: BmcAccess) -> RedfishHardware:
        """A driver as a new process would have it."""
        return RedfishHardware((self.access, *more), self.marks, self.memory(), **self.options)

    def with_access(self, **fields: Any) -> Desk:
        return replace(self, access=self.access.model_copy(update=fields))

    async def carry(self, request: HttpsRequest) -> Sent:
        """Let the child send what was prepared."""
        async with Sender(request, 5) as child:
            return await child.go()

    def agent_says(self, boot_id: str) -> None:
        with self.store.write() as session:
            now = self.clock()
            session.merge(NodeRow(cluster="east", name=NODE, state_since=now, boot_id=boot_id, last_heard_at=now))


def an_act(kind: ActKind = ActKind.POWER_CYCLE, node: str = NODE, **baseline: Any) -> Act:
    """An act as the activity intends it: with what the agent said."""
    said = {"boot_id": "boot-1", "identity": IDENTITY, "identity_at": datetime.now(UTC).isoformat()}
    mark = Mark(repair_id=REPAIR, text="test")
    return Act(kind=kind, cluster="east", node=node, target=node, mark=mark, baseline=said | baseline)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, with its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    made = tmp_path_factory.mktemp("bmc") / "bmc.pem"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{made}.key"]
    name = [
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "keyUsage=critical,digitalSignature,keyCertSign",
    ]
    subprocess.run(
        ["openssl", "req", "-x509", "-days", "2", *key, *name, "-out", made], check=True, capture_output=True
    )
    made.write_text(made.read_text() + Path(f"{made}.key").read_text())
    return made


@pytest.fixture
def store_url(tmp_path: Path, migrated_file: Path) -> str:
    """One kind of database: what of a BMC is kept is tested on all of them in tests/store."""
    shutil.copyfile(migrated_file, tmp_path / "daytwo.db")
    return f"sqlite:///{tmp_path}/daytwo.db"


@pytest.fixture
def bmc(certificate: Path) -> Iterator[Bmc]:
    """A BMC with one machine that is on and well."""
    with serving(Bmc(), certificate) as served:
        yield served


@pytest.fixture
def desk(bmc: Bmc, certificate: Path, store: Store, tmp_path: Path) -> Desk:
    """A driver that may reach the BMC, of a node that is drained by our repair."""
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    access = BmcAccess(
        nodes=(NODE,), address=bmc.address, ca=str(certificate), user="daytwo", password=f"file:{secret}"
    )
    clock = Clock()
    return Desk(bmc, access, store, Marks(), clock, clock() - timedelta(days=2), {"read_seconds": 5.0})


async def send(desk: Desk, kind: ActKind = ActKind.POWER_CYCLE) -> Act:
    """Send one act through the child. Returns it with its baseline."""
    driver = desk.driver()
    act = await driver.baseline(an_act(kind))
    prepared = await driver.prepare(act)
    assert isinstance(prepared, HttpsRequest), prepared
    await desk.carry(prepared)
    return act


async def reset(desk: Desk, kind: ActKind) -> Look:
    """Send one act and look at it."""
    return await desk.driver().look(await send(desk, kind))
