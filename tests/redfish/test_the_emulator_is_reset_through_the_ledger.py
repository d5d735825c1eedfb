"""The common path on somebody else's Redfish: the sushy emulator over TLS, through the ledger of intents and its child.

It has basic authentication only, and neither tasks, LastResetTime nor PowerCycle.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import bcrypt
import pytest

from daytwo import repairs
from daytwo.domain.definition import BmcAccess
from daytwo.domain.errors import NotYet, Refused
from daytwo.domain.seams import Act, ActKind, Look
from daytwo.hardware.redfish import RedfishHardware
from daytwo.hardware.redfish_memory import Memory
from daytwo.intents import Ledger
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, NodeRow
from tests.redfish.bmc import PASSWORD
from tests.redfish.conftest import REPAIR, Marks, an_act


class Emulator(NamedTuple):
    """Where it listens, what it logs, and what vouches for it."""

    address: str
    log: Path
    certificate: Path

    def resets_of(self, node: str) -> int:
        return self.log.read_text().count(f"POST /redfish/v1/Systems/{uuid_of(node)}/Actions/ComputerSystem.Reset")


NODES = ("gpu-001", "gpu-002")


def uuid_of(node: str) -> str:
    return f"11111111-2222-3333-4444-000000000{node[-3:]}"


def a_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def config(folder: Path, certificate: Path, port: int) -> Path:
    password = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "htpasswd").write_text(f"daytwo:{password}\n")
    (folder / "state").mkdir()
    systems = [
        {"uuid": uuid_of(node), "name": node, "power_state": "On", "nics": [{"mac": "00:5c:52:31:3a:01", "ip": "::1"}]}
        for node in NODES
    ]
    values = {
        "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
        "SUSHY_EMULATOR_LISTEN_PORT": port,
        "SUSHY_EMULATOR_SSL_CERT": str(certificate),
        "SUSHY_EMULATOR_SSL_KEY": str(certificate),
        "SUSHY_EMULATOR_AUTH_FILE": str(folder / "htpasswd"),
        "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_STATE_DIR": str(folder / "state"),
        "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
    }
    path = folder / "emulator.conf"
    path.write_text("\n".join(f"{name} = {value!r}" for name, value in values.items()))
    return path


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "the emulator ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the emulator does not listen")


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Emulator]:
    """A running emulator with two machines."""
    folder, port = tmp_path_factory.mktemp("emulator"), a_port()
    program = Path(sysconfig.get_path("scripts")) / "sushy-emulator"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "--config", config(folder, certificate, port)], stdout=log, stderr=log, cwd=folder
        )
        wait_for(port, process)
        yield Emulator(f"https://127.0.0.1:{port}", folder / "log", certificate)
        process.terminate()
        process.wait(10)


@pytest.fixture
def driver(emulator: Emulator, store: Store, monkeypatch: pytest.MonkeyPatch) -> RedfishHardware:
    monkeypatch.setenv("DAYTWO_TEST_EMULATOR", PASSWORD)
    access = BmcAccess(
        nodes=NODES,
        address=emulator.address,
        ca=str(emulator.certificate),
        user="daytwo",
        password="env:DAYTWO_TEST_EMULATOR",
        lit_is_located=False,  # its indicator is lit in ordinary service
    )
    memory = Memory(store, "east", datetime.now(UTC) - timedelta(days=1))
    return RedfishHardware((access,), Marks(), memory)


async def carried_out(store: Store, driver: RedfishHardware, act: Act) -> Look:
    """As the activity does it: again until it is proven."""
    with store.write() as session:
        node = NodeRow(cluster="east", name=act.node, state_since=datetime.now(UTC))
        session.add(node)
        repairs.open_row(
            session, REPAIR, node, why="test", opened_by="policy", policy_revision=1, now=datetime.now(UTC)
        )
    ledger = Ledger(store, {"bmc": driver})
    while True:
        try:
            return await ledger.carry_out("key", "bmc", act)
        except NotYet:
            await asyncio.sleep(0.2)


@pytest.mark.parametrize(
    ("kind", "node"),
    [(ActKind.REBOOT, "gpu-001"), (ActKind.POWER_CYCLE, "gpu-002")],
)
async def test_each_step_is_done_once_and_seen_off_and_on(
    emulator: Emulator, store: Store, driver: RedfishHardware, kind: ActKind, node: str
) -> None:
    act = await driver.baseline(an_act(kind, node, boot_id=None, identity={"system_uuid": uuid_of(node)}))
    look = await carried_out(store, driver, act)
    assert "off in between" in look.proof
    assert emulator.resets_of(node) == 1
    with store.read() as session:
        row = session.get_one(IntentRow, "key")
    assert (row.state, PASSWORD in str(row)) == ("proven", False)


async def test_the_machine_of_another_node_is_not_reset(emulator: Emulator, driver: RedfishHardware) -> None:
    with pytest.raises(Refused, match="is not there"):
        await driver.baseline(an_act(ActKind.POWER_CYCLE, "gpu-001", identity={"system_uuid": uuid_of("gpu-099")}))
