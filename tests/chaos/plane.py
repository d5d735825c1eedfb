"""Everything of a chaos run: the world, Temporal with its database, PostgreSQL, and every process of ours.

`a_chaos_plane` starts it. Each part that may be struck is a `Victim` by name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx

from daytwo.domain.definition import BmcAccess, ClusterDefinition
from daytwo.domain.policy import Attempts, Breaker, Budget, Policy
from daytwo.gateway.identity import issue_token
from daytwo.intake import declare
from daytwo.lab.approval import lab_approval
from daytwo.lab.client import LabClient
from daytwo.lab.definition import CLUSTER, lab_definition, node_names
from daytwo.settings import Settings
from daytwo.store.engine import Store
from tests import postgres as pg
from tests.chaos.victims import Backend, Part, Postmaster, Victim
from tests.chaos.world import GPUS, PASSWORD, USER
from tests.crashes.processes import Process, Program
from tests.workflows.plane import wait_for
from workers import probes
from workers.temporal_server import NAMESPACE, TemporalServer

SPEED: Final = 300.0
BOOT_SECONDS: Final = 150.0
"""Longer than a lost send takes: its deadline, the BMC's settling time, and a second reset."""
MANY: Final = 10_000
DURABLE: Final = ("synchronous_commit=on",)
"""What is acknowledged must survive a server that is killed; a power cut is not tried."""
SHORT_RUNS: Final = ("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60")
"""So that a repair continues as new several times, and is struck as it does."""
TEMPORAL, POSTGRES, BACKEND = "temporal", "postgres", "postgres-backend"


@dataclass
class ChaosPlane:
    """Handles on everything."""

    settings: Settings
    store: Store
    lab: LabClient
    temporal: TemporalServer
    victims: dict[str, Victim]
    nodes: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where all state and logs are."""
        return self.settings.state_dir

    def ask_world(self, method: str, path: str, body: Any = None) -> Any:
        """Speak to the fleet itself, past daytwo."""
        transport = httpx.HTTPTransport(uds=str(self.folder / "lab.sock"), verify=False)
        with httpx.Client(transport=transport, base_url="http://lab", timeout=20) as client:
            return client.request(method, path, json=body).raise_for_status().json()

    def resets(self) -> int:
        """How often a machine was reset, by the emulator's own log."""
        with (self.folder / "emulator.log").open(errors="replace") as log:
            return sum("ComputerSystem.Reset HTTP" in line and '" 204 ' in line for line in log)

    def resets_before_emulator(self, node: str | None = None) -> int:
        """The same by the log that stands before it, of one machine or all."""
        entries = [json.loads(line) for line in (self.folder / "bmc.log").read_text().splitlines()]
        mine = [entry for entry in entries if node in (None, entry["node"])]
        return sum(entry["status"] == 204 and "ComputerSystem.Reset" in entry["path"] for entry in mine)


@contextlib.contextmanager
def a_store(folder: Path, *, postgres: bool) -> Iterator[tuple[str, dict[str, Victim]]]:
    """The address of an empty store; with PostgreSQL also what of it may be struck."""
    if not postgres:
        yield f"sqlite:///{folder}/daytwo.db", {}
        return
    with pg.a_postgres(*DURABLE) as server, server.database() as url:
        yield url, {POSTGRES: Postmaster(server, url), BACKEND: Backend(server, url)}


@contextlib.asynccontextmanager
async def a_chaos_plane(folder: Path, *, nodes: int, seed: int, postgres: bool) -> AsyncIterator[ChaosPlane]:
    """Start everything; it ends with the block."""
    with contextlib.ExitStack() as stack:
        bmcs = await asyncio.to_thread(_begin_world, stack, folder, nodes, seed)
        url, victims = stack.enter_context(a_store(folder, postgres=postgres))
        settings, temporal = _settings(folder, url), TemporalServer(folder / "temporal.db", a_port(), a_port())
        store = Store(url)
        stack.callback(store.close)
        store.migrate()
        _declare(store, folder, nodes, bmcs)
        victims |= parts(settings, temporal)
        for victim in victims.values():
            stack.callback(victim.end)
            await victim.begin()
        lab = LabClient(str(folder / "lab.sock"))
        yield ChaosPlane(settings, store, lab, temporal, victims, node_names(nodes))


def parts(settings: Settings, temporal: TemporalServer) -> dict[str, Victim]:
    """Our processes and Temporal's, none of them started, in the order in which they start."""
    env, folder = _environment(settings, temporal), settings.state_dir
    agents = (folder / "lab.sock", settings.gateway_url, folder / "tokens.json", folder / "spools")

    def ours(name: str, module: str, *arguments: object, says: str) -> Part:
        log = folder / f"{name}.log"
        return Part(name, Process(module, env, log, arguments), log=log, says=says)

    return {
        TEMPORAL: Part(
            TEMPORAL,
            Program((*temporal.command(), *SHORT_RUNS), env, folder / "temporal.log"),
            answers=temporal.is_ready,
        ),
        "gateway": Part(
            "gateway",
            Process("workers.gateway", env, folder / "gateway.log"),
            answers=probes.http(f"{settings.gateway_url}/readyz"),
        ),
        "service": Part(
            "service",
            Process("workers.service", env, folder / "service.log"),
            answers=probes.http_over_socket(settings.service_socket),
        ),
        "worker": ours("worker", "workers.control", says="serving task queue"),
        "controller": ours("controller", "workers.controller", says="loop reconcile runs here"),
        "agents": ours("agents", "tests.chaos.agents", *agents, says="nodes live"),
    }


def _begin_world(stack: contextlib.ExitStack, folder: Path, nodes: int, seed: int) -> dict[str, int]:
    _certificate(folder / "bmc.pem")
    world = Process("tests.chaos.world", os.environ, folder / "world.log", (folder, nodes, SPEED, seed))
    stack.callback(world.end)
    world.start()
    wait_for(lambda: (folder / "bmcs.json").exists(), f"the world; see {folder}/world.log")
    found: dict[str, int] = json.loads((folder / "bmcs.json").read_text())
    return found


def _certificate(path: Path) -> None:
    """A certificate for 127.0.0.1 that vouches for itself, with its key."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{path}.key")
    uses = ("subjectAltName=IP:127.0.0.1", "keyUsage=critical,digitalSignature,keyCertSign")
    names = ("-subj", "/CN=127.0.0.1", *(word for use in uses for word in ("-addext", use)))
    command = ("openssl", "req", "-x509", "-days", "2", *curve, *names, "-out", str(path))
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.key").read_text())


def a_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _settings(folder: Path, url: str) -> Settings:
    return Settings(
        state_dir=folder,
        store_url=url,
        service_socket=folder / "service.sock",
        gateway_url=f"http://127.0.0.1:{a_port()}",
        task_queue="chaos",
    )


def _environment(settings: Settings, temporal: TemporalServer) -> dict[str, str]:
    return {
        **os.environ,
        "DAYTWO_STATE_DIR": str(settings.state_dir),
        "DAYTWO_STORE_URL": settings.store_url,
        "DAYTWO_SERVICE_SOCKET": str(settings.service_socket),
        "DAYTWO_GATEWAY_URL": settings.gateway_url,
        "DAYTWO_TASK_QUEUE": settings.task_queue,
        "DAYTWO_PULSE_SECONDS": "5",
        "DAYTWO_SEND_SECONDS": "3",
        "DAYTWO_LEASE_SECONDS": "3",
        "DAYTWO_STICKY_SECONDS": "1",
        "DAYTWO_BMC_PASSWORD": PASSWORD,
        "TEMPORAL_ADDRESS": temporal.address,
        "TEMPORAL_NAMESPACE": NAMESPACE,
        "PYTHONUNBUFFERED": "1",
    }


def _declare(store: Store, folder: Path, nodes: int, bmcs: dict[str, int]) -> None:
    usual = lab_definition(str(folder / "lab.sock"), nodes=nodes, gpus=GPUS, speed=SPEED, pulse_seconds=5)
    access = tuple(_access(folder, name, port) for name, port in bmcs.items())
    definition = usual.model_copy(update={"policy": _policy(usual.policy), "bmcs": access})
    declare(store, ClusterDefinition.model_validate(definition.model_dump()), now=datetime.now(UTC))
    tokens = {name: issue_token(store, CLUSTER, name, now=datetime.now(UTC)) for name in node_names(nodes)}
    (folder / "tokens.json").write_text(json.dumps(tokens))


def _access(folder: Path, name: str, port: int) -> BmcAccess:
    return BmcAccess(
        nodes=(name,),
        address=f"https://127.0.0.1:{port}",
        ca=str(folder / "bmc.pem"),
        user=USER,
        password="env:DAYTWO_BMC_PASSWORD",
        lit_is_located=False,  # the emulator keeps its indicator lit in ordinary service
    )


def _policy(usual: Policy) -> Policy:
    """Nothing but a person's word and the machine stands between a repair and its end."""
    return usual.model_copy(
        update={
            "approval": lab_approval(),
            "budget": Budget(
                acting_share=1,
                acting_nodes=MANY,
                acting_per_domain=MANY,
                containing_share=1,
                containing_nodes=MANY,
                interruptions_per_hour=MANY,
                interruption_apart_seconds=0,
            ),
            "breaker": Breaker(nodes=MANY, pool_nodes=MANY, pool_share=1),
            "attempts": Attempts(per_day=MANY, per_week=MANY),
            "drain": usual.drain.model_copy(update={"timeout_seconds": 600.0}),
            "verify": usual.verify.model_copy(update={"timeout_seconds": 300.0, "answer_seconds": 120.0}),
            "timing": usual.timing.model_copy(update={"boot_seconds": BOOT_SECONDS, "silent_after_seconds": 120.0}),
        }
    )
