"""A plane whose processes, Temporal and PostgreSQL are real and can be stopped, and what it does meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from daytwo.lab.client import LabClient
from daytwo.lab.definition import node_names
from daytwo.store.engine import Store
from tests.crashes.processes import Process, Program
from tests.workflows.plane import Plane, environment, free_port, prepared, start_lab, wait_for
from workers.temporal_server import NAMESPACE, TemporalServer

NODES: Final = 10
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Meanwhile(NamedTuple):
    """What was seen while something was away: who told of it, how long answers took, what our processes cost."""

    away: list[tuple[str, ...]]
    slowest: float
    cpu_share: dict[str, float]
    died: list[str]


@dataclass
class StoppablePlane(Plane):
    """A plane of processes."""

    parts: dict[str, Process] = field(default_factory=dict)
    temporal: Program | None = None

    def status(self) -> dict[str, Any]:
        """What `daytwo status` shows."""
        transport = httpx.HTTPTransport(uds=str(self.settings.service_socket), verify=False)
        with httpx.Client(transport=transport, base_url="http://daytwo", timeout=30) as client:
            found: dict[str, Any] = client.get("/v1/status").raise_for_status().json()
            return found

    def reached(self) -> bool:
        """True when nothing is away and every loop runs."""
        found = self.status()
        return not found["away"] and bool(found["loops"]) and all(loop["alive"] for loop in found["loops"])

    async def watched(self, seconds: float, until: Callable[[], bool] = lambda: False) -> Meanwhile:
        """Ask for the status again and again for so long, or until something has happened."""
        pids = {name: part.pid for name, part in self.parts.items()}
        before, began = {name: _cpu(pid) for name, pid in pids.items()}, time.monotonic()
        away: list[tuple[str, ...]] = []
        slowest = 0.0
        while time.monotonic() - began < seconds and not await asyncio.to_thread(until):
            asked = time.monotonic()
            away.append(tuple((await asyncio.to_thread(self.status))["away"]))
            slowest = max(slowest, time.monotonic() - asked)
            await asyncio.sleep(0.5)
        passed = time.monotonic() - began
        died = [name for name, part in self.parts.items() if not part.is_running or part.pid != pids[name]]
        alive = [name for name in pids if name not in died]
        return Meanwhile(away, slowest, {name: (_cpu(pids[name]) - before[name]) / passed for name in alive}, died)

    def story(self, node: str) -> str:
        """Everything that helps when a test fails."""
        return "\n".join([super().story(node), *(f"-- {name}\n{part.told()}" for name, part in self.parts.items())])


def _cpu(pid: int) -> float:
    """Seconds of processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.asynccontextmanager
async def a_stoppable_plane(root: Path, store_url: str) -> AsyncIterator[StoppablePlane]:
    """Start everything, on this store."""
    settings = prepared(root, NODES, store_url)
    server = TemporalServer(root / "temporal.db", free_port(), free_port())
    env = {
        **environment(settings),
        "DAYTWO_SERVICE_SOCKET": str(settings.service_socket),
        "TEMPORAL_ADDRESS": server.address,
        "TEMPORAL_NAMESPACE": NAMESPACE,
        "DAYTWO_SEND_SECONDS": "2",
        "DAYTWO_LEASE_SECONDS": "2",
    }
    with contextlib.ExitStack() as stack:
        temporal = Program(server.command(), env, root / "temporal.log")
        _started(stack, temporal)
        await _until(server.is_ready)
        parts = {name: Process(f"workers.{name}", env, root / f"{name}.log") for name in _PARTS}
        for part in parts.values():
            _started(stack, part)
        await asyncio.to_thread(wait_for, lambda: httpx.get(f"{settings.gateway_url}/readyz").is_success, "the gateway")
        await asyncio.to_thread(start_lab, stack, settings, NODES)
        client = await Client.connect(server.address, namespace=NAMESPACE, data_converter=pydantic_data_converter)
        with _opened(settings.store_url) as store:
            lab = LabClient(str(root / "lab.sock"))
            plane = StoppablePlane(
                store, client, settings, lab, list(node_names(NODES)), parts=parts, temporal=temporal
            )
            await asyncio.to_thread(wait_for, plane.reached, "every loop", 60)
            yield plane


_PARTS: Final = ("service", "gateway", "control", "controller")


def _started(stack: contextlib.ExitStack, process: Process) -> None:
    stack.callback(process.end)
    process.start()


@contextlib.contextmanager
def _opened(url: str) -> Iterator[Store]:
    store = Store(url)
    yield store
    store.close()


async def _until(ready: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not await ready():
        assert time.monotonic() < end, "Temporal did not start"
        await asyncio.sleep(0.1)
