"""What a healthy fleet costs in Temporal: no workflow, so no action, however many nodes there are and however long.

    .venv/bin/python bench/healthy_fleet.py --nodes 200 --seconds 60

`daytwo up` with a simulated fleet whose nodes pulse every five seconds. Once all are healthy it is left alone. Then
Temporal is asked how many workflows there are and ever were, and how many schedules. Exits with 1 unless the answer is
none.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agent_footprint import _cpu_nanoseconds
from temporalio.client import Client

from daytwo.lab.demo.plane import Plane, until, up


def temporal_pid(folder: Path) -> int:
    """The process of the server that has its database in this folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        words = (entry / "cmdline").read_bytes().split(b"\0") if (entry / "cmdline").exists() else []
        if os.fsencode(folder / "temporal.db") in words and b"start-dev" in words:
            return int(entry.name)
    raise RuntimeError("no Temporal server runs")


async def known(plane: Plane) -> dict[str, int]:
    """What there is in Temporal, and ever was since the plane began."""
    client = await Client.connect(plane.where["temporal_address"], namespace=plane.where["temporal_namespace"])
    schedules = [each async for each in await client.list_schedules()]
    return {"workflows": (await client.count_workflows()).count, "schedules": len(schedules)}


def is_healthy(plane: Plane, nodes: int) -> bool:
    """True when every node is."""
    found: dict[str, Any] = plane.get("status")
    return bool(found["nodes"] == {"healthy": nodes})


def main() -> int:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200, help="nodes of the fleet (default 200)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it is left alone (default 60)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name) / "plane"
        with up(folder, "--lab", str(given.nodes)) as plane:
            until(lambda: is_healthy(plane, given.nodes), seconds=180, what="healthy nodes", check=lambda: None)
            pid = temporal_pid(folder)
            before = _cpu_nanoseconds(pid)
            time.sleep(given.seconds)
            share = (_cpu_nanoseconds(pid) - before) / 1e9 / given.seconds
            found = asyncio.run(known(plane))
    print(f"{'workflows, open or ended':35}{found['workflows']:>8}  0")
    print(f"{'schedules':35}{found['schedules']:>8}  0")
    print(f"{'Temporal server, share of a core':35}{share:>8.3f}")
    print(
        f"\n{given.nodes} nodes for {given.seconds:g} s; {os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}"
    )
    sys.stdout.flush()
    os._exit(int(any(found.values())))  # Temporal's client may abort an interpreter that ends


if __name__ == "__main__":
    sys.exit(main())
