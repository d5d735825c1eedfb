"""A plane with planted secrets repairs a node through a BMC; then everything that it wrote and showed is searched."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from daytwo.cli.main import run
from daytwo.lab.definition import CLUSTER, node_names
from daytwo.store.engine import Store
from tests.house.running import processes_of, wait_for
from tests.postgres import Postgres
from tests.redfish.bmc import PASSWORD, Bmc, serving
from workers.lab_part import LabPart
from workers.temporal_server import program

pytestmark = pytest.mark.timeout(240)
"""A whole plane starts, repairs and ends."""

STORE_PASSWORD = "planted-store-9c41"
API_KEY = "planted-temporal-77ab"
UP = (sys.executable, "-m", "daytwo.cli.main", "up", "--any-port", "--lab", "2", "--speed", "3000")
CLI = (sys.executable, "-m", "daytwo.cli.main")
NODES = node_names(2)
NODE = NODES[0]
READS = (
    *(("status",), ("nodes", "list"), ("nodes", "show", NODE), ("repairs", "list", "--all"), ("findings", "list")),
    *(
        ("clusters", "list"),
        ("audit", "list"),
        ("audit", "verify"),
        ("freeze", "--list"),
        ("policy", "explain", "xid-79"),
    ),
)
ITS_HOME = ("lab-tokens.json",)
"""Where a secret belongs: the nodes' own tokens, which the simulated nodes read."""


@dataclass
class Planted:
    """A plane that has repaired something, and all that nobody may tell."""

    state: Path
    environ: dict[str, str]
    secrets: dict[str, str]
    repair: str
    cmdlines: bytes

    def cli(self, *words: str) -> str:
        done = subprocess.run([*CLI, *words], env=self.environ, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def read(self, *words: str) -> Any:
        done = subprocess.run(
            [*CLI, *words, "-o", "json"], env=self.environ, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def found_in(self, said: str | bytes) -> list[str]:
        raw = said.encode() if isinstance(said, str) else said
        return [name for name, secret in self.secrets.items() if secret.encode() in raw]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres, certificate: Path) -> Iterator[Planted]:
    state = tmp_path_factory.mktemp("s")
    password = tmp_path_factory.mktemp("elsewhere") / "bmc"
    password.write_text(PASSWORD)
    with postgres.database() as url, serving(Bmc(), certificate) as bmc:
        secret_url = url.replace("daytwo@", f"daytwo:{STORE_PASSWORD}@")
        own = {"DAYTWO_STATE_DIR": str(state), "DAYTWO_STORE_URL": secret_url}
        temporal = {"TEMPORAL_API_KEY": API_KEY, "TEMPORAL_TLS": "false"}
        environ = {**os.environ, **own, **temporal}
        with (state / "up.log").open("wb") as log, subprocess.Popen(UP, env=environ, stdout=log, stderr=log) as up:
            try:
                wait_for((state / "up.json").exists)
                planted = Planted(
                    state, environ, {"store": STORE_PASSWORD, "temporal": API_KEY, "bmc": PASSWORD}, "", b""
                )
                repair(planted, bmc, certificate, password)
                yield planted
            finally:
                up.terminate()


def repair(plane: Planted, bmc: Bmc, certificate: Path, password: Path) -> None:
    """Power-cycle a node through its BMC, as far as the BMC is told to."""
    told = until(lambda: plane.read("nodes", "show", NODE)["identity"].get("system_uuid"))
    bmc.system["UUID"] = told
    definition = LabPart(plane.state, 2, 3000.0).definition().model_dump(mode="json")
    access = {"nodes": [NODE], "address": bmc.address, "ca": str(certificate), "user": "daytwo"}
    definition["bmcs"] = [{**access, "password": f"file:{password}"}]
    (plane.state / "lab.yaml").write_text(json.dumps(definition))
    assert "planted" not in plane.cli("clusters", "apply", str(plane.state / "lab.yaml"))
    asked = plane.read("nodes", "repair", NODE, "--action", "power-cycle", "--reason", "test")
    plane.repair = asked["id"]
    try:
        until(lambda: approved(plane) and bmc.resets, 60)
    except AssertionError:
        raise AssertionError(plane.cli("repairs", "show", plane.repair)) from None
    tokens = json.loads((plane.state / "lab-tokens.json").read_text())
    plane.secrets |= {f"token of {node}": token for node, token in tokens.items()}
    plane.cmdlines = b"".join(cmdlines())


def approved(plane: Planted) -> bool:
    """Approve what stands, again where it was revised meanwhile."""
    shown = plane.read("repairs", "show", plane.repair)
    if shown["state"] == "proposed" and shown["revision"]:
        plane.cli("repairs", "approve", plane.repair, "--revision", str(shown["revision"]), "--reason", "test")
    return True


def cmdlines() -> Iterator[bytes]:
    """What `ps` shows of everything that runs."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield process.read_bytes()


def until(true: Callable[[], Any], seconds: float = 90.0) -> Any:
    found: list[Any] = []
    wait_for(lambda: found.append(true()) or found[-1], seconds)
    return found[-1]


def test_no_file_of_the_plane_holds_a_secret(plane: Planted) -> None:
    """Logs, notices, Temporal's database with all histories, what `up` tells: everything in the state folder."""
    files = [path for path in plane.state.rglob("*") if path.is_file() and path.name not in ITS_HOME]
    told = {str(path.relative_to(plane.state)): plane.found_in(path.read_bytes()) for path in files}
    assert {"log/worker.log", "log/controller.log", "log/service.log", "temporal.db", "notices.jsonl"} <= told.keys()
    assert {name: found for name, found in told.items() if found} == {}
    assert plane.found_in((plane.state / "lab-tokens.json").read_bytes()) == [f"token of {name}" for name in NODES]


def test_no_row_of_the_store_holds_a_secret(plane: Planted) -> None:
    store = Store(plane.environ["DAYTWO_STORE_URL"])
    with store.read() as session:
        tables = inspect(session.connection()).get_table_names()
        rows = {table: repr(session.execute(text(f"SELECT * FROM {table}")).all()) for table in tables}
    store.close()
    assert rows["intents"] != "[]"
    assert {table: found for table, said in rows.items() if (found := plane.found_in(said))} == {}


@pytest.mark.parametrize("form", ["table", "json", "yaml", "name"])
def test_no_command_tells_a_secret(plane: Planted, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    for words in (*READS, ("repairs", "show", plane.repair)):
        run(["--socket", str(plane.state / "service.sock"), *words, "-o", form])
    said = "".join(capfd.readouterr())
    assert plane.repair in said
    assert plane.found_in(said) == []


def test_no_history_tells_a_secret(plane: Planted) -> None:
    about = json.loads((plane.state / "up.json").read_text())
    where = ("--address", about["temporal_address"], "--namespace", about["temporal_namespace"])
    words = ("workflow", "show", "--workflow-id", f"repair:{CLUSTER}:{NODE}", "--output", "json")
    shown = subprocess.run([program(), *words, *where], capture_output=True, text=True, check=True).stdout
    payloads = [base64.b64decode(data) for data in re.findall(r'"data": "([A-Za-z0-9+/=]+)"', shown)]
    assert any(b"power-cycle" in payload for payload in payloads)
    assert plane.found_in(shown.encode() + b"".join(payloads)) == []


def test_no_process_shows_a_secret_in_its_command(plane: Planted) -> None:
    assert b"workers.gateway" in plane.cmdlines
    assert plane.found_in(plane.cmdlines) == []


@pytest.mark.parametrize(
    ("part", "kept_from"),
    [("temporal", ("store", "temporal")), ("workers.gateway", ("temporal",)), ("daytwo.lab", ("store", "temporal"))],
)
def test_a_part_is_not_told_what_it_does_not_use(plane: Planted, part: str, kept_from: tuple[str, ...]) -> None:
    pid = the_process(plane, part)
    assert not set(plane.found_in(Path(f"/proc/{pid}/environ").read_bytes())) & set(kept_from)


def the_process(plane: Planted, part: str) -> int:
    (pid,) = (pid for pid in processes_of(plane.state, part) if is_part(pid, part))
    return pid


def is_part(pid: int, part: str) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return part.encode() in words or (part == "temporal" and words[0].endswith(b"/temporal"))


def test_no_file_is_for_others(plane: Planted) -> None:
    open_to = {
        str(path.relative_to(plane.state)): oct(path.stat().st_mode & 0o777)
        for path in plane.state.rglob("*")
        if path.stat().st_mode & 0o077 and not path.is_socket() and path.name not in ("up.log", "lab.yaml")
    }
    assert open_to == {}


@pytest.mark.parametrize("part", ["workers.gateway", "workers.service", "workers.control", "workers.controller"])
def test_no_process_leaves_a_core_dump(plane: Planted, part: str) -> None:
    pid = the_process(plane, part)
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0\s+0\s", limits)
    assert int(Path(f"/proc/{pid}/coredump_filter").read_text(), 16) == 0
