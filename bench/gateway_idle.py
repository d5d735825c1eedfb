"""What one more idle node costs a gateway: memory and processor time, as the slope from few nodes to many.

    .venv/bin/python bench/gateway_idle.py --nodes 1000 10000

A real gateway process with a SQLite store; each node pulses once in `--period` seconds as an agent with nothing to say
does, on a connection of its own, spread evenly. Two periods pass before the measured one, so that whatever the gateway
keeps of a node is there. Both counts are measured on a gateway of their own, and the slope is what lies between: the
gateway's own size does not count. Exits with 1 when the slope is over a limit.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_footprint import _cpu_nanoseconds, _pss_kib

from daytwo.gateway.identity import PREFIX
from daytwo.lab.definition import node_names
from daytwo.lab.demo.children import Background
from daytwo.lab.demo.plane import until
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow, NodeTokenRow
from workers.ports import Ports

CLUSTER: Final = "bench"
MEMORY_BYTES: Final = 20_000
CPU_MICROSECONDS: Final = 30.0
CHECKS: Final = ("kernel-log", "nvml", "gpu-count", "thermal", "recovery-action", "ecc", "row-remap")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a gateway with so many nodes: bytes, and seconds of a processor in a second."""

    nodes: int
    memory: float
    cpu: float
    slowest: float


def filled(folder: Path, names: tuple[str, ...]) -> str:
    """The address of a store with these nodes, each with the token that `token_of` names."""
    store = Store(f"sqlite:///{folder}/daytwo.db")
    store.migrate()
    now = datetime.now(UTC)
    with store.write() as session:
        for name in names:
            hashed = hashlib.sha256(token_of(name).encode()).hexdigest()
            session.add(NodeRow(cluster=CLUSTER, name=name, state_since=now, due=1))
            session.add(NodeTokenRow(hash=hashed, cluster=CLUSTER, node=name, created_at=now))
    store.close()
    return store.url


def token_of(name: str) -> str:
    """A node's token."""
    return f"{PREFIX}{name}"


@contextmanager
def gateway(folder: Path, store_url: str) -> Iterator[tuple[int, int]]:
    """A gateway process; gives its process id and port."""
    with Ports() as ports:
        port = ports.choose(8460, what="the gateway", any_free=True)
    address = {"DAYTWO_GATEWAY_URL": f"http://127.0.0.1:{port}", "DAYTWO_STATE_DIR": str(folder)}
    env = {**os.environ, **address, "DAYTWO_STORE_URL": store_url}
    running = Background("gateway", [sys.executable, "-m", "workers.gateway"], log=folder / "gateway.log", env=env)
    try:
        until(lambda: _listens(port), seconds=60, what="the gateway", check=running.check)
        yield running.pid, port
    finally:
        running.stop()


def _listens(port: int) -> bool:
    async def ask() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    return asyncio.run(ask())


def request(name: str, checks: dict[str, str] | None) -> bytes:
    """A pulse of an agent that has nothing to say; its checks are in the first one."""
    body = json.dumps(
        {
            "stream": 0,
            "sequence": 0,
            "boot_id": "b",
            "clock": time.time(),
            "version": "0.2.0",
            "started_at": time.time(),
            "identity": {"system_uuid": f"u-{name}", "serial": "s", "product": "p"},
            "digest": "d",
            "checks": checks,
            "inventory": None,
            "answers": [],
        }
    ).encode()
    head = (
        f"POST /v1/nodes/{name}/pulse HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {token_of(name)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def pulse(port: int, name: str, at: float, checks: dict[str, str] | None) -> float:
    """Pulse at a moment of the loop's clock; returns how long the answer took. Raises `RuntimeError` for a refusal."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(max(0.0, at - loop.time()))
    began = loop.time()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(name, checks))
    answer = await reader.read(1_000_000)
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{name}: {answer[:200]!r}")
    return loop.time() - began


async def period(port: int, names: tuple[str, ...], seconds: float, checks: dict[str, str] | None = None) -> float:
    """Let each node pulse once within so many seconds; returns the slowest answer."""
    began = asyncio.get_running_loop().time()
    each = seconds / len(names)
    took = await asyncio.gather(
        *(pulse(port, name, began + number * each, checks) for number, name in enumerate(names))
    )
    return max(took)


def measure(count: int, seconds: float) -> Cost:
    """Run a gateway with so many nodes."""
    names = node_names(count)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with gateway(folder, filled(folder, names)) as (pid, port):
            for checks in (dict.fromkeys(CHECKS, "ok"), None):
                asyncio.run(period(port, names, seconds, checks))
            before, began = _cpu_nanoseconds(pid), time.monotonic()
            slowest = asyncio.run(period(port, names, seconds))
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
            lasted = time.monotonic() - began
            cpu = (_cpu_nanoseconds(pid) - before) / 1e9 / lasted
            return Cost(count, _pss_kib(pid) * 1024, cpu, slowest)


def report(few: Cost, many: Cost) -> int:
    """Print the figures; returns the exit status."""
    more = many.nodes - few.nodes
    memory, cpu = (many.memory - few.memory) / more, (many.cpu - few.cpu) / more * 1e6
    print(f"{'nodes':>8}{'PSS MiB':>10}{'% of a core':>13}{'slowest answer, s':>19}")
    for cost in (few, many):
        print(f"{cost.nodes:>8}{cost.memory / 2**20:>10.1f}{cost.cpu * 100:>13.1f}{cost.slowest:>19.2f}")
    print(f"\neach further idle node: {memory / 1000:.1f} kB (≤ {MEMORY_BYTES / 1000:g}), ", end="")
    print(f"{cpu:.1f} µs of a processor each second (≤ {CPU_MICROSECONDS:g})")
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}")
    return int(memory > MEMORY_BYTES or cpu > CPU_MICROSECONDS)


def main() -> int:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs=2, default=(1000, 10_000), help="few and many (default 1000 10000)")
    parser.add_argument("--period", type=float, default=60.0, help="seconds between two pulses of a node (default 60)")
    given = parser.parse_args()
    few, many = (measure(count, given.period) for count in sorted(given.nodes))
    return report(few, many)


if __name__ == "__main__":
    sys.exit(main())
