"""The agents of a simulated fleet as a process that may be killed: the real agent core, and spools on a real disk.

`python -m tests.chaos.agents LAB_SOCKET GATEWAY_URL TOKENS SPOOLS`

What it sees of its nodes it is told by the world, which lives on. On a node of its own each agent would die alone; here
all die at once.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx

from daytwo.agent.journal import DiskJournal
from daytwo.lab.agents import Agents
from daytwo.lab.main import read_tokens
from daytwo.lab.world import Gpu, KernelLine, Node

log = logging.getLogger(__name__)

FOLLOW_SECONDS: Final = 0.05


class Mirror:
    """The nodes as the world tells of them."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.nodes: dict[str, Node] = {}

    async def follow(self) -> None:
        """Ask once what is new."""
        known = {node.boot_id: len(node.kernel) for node in self.nodes.values()}
        answer = await self._client.post("/mirror", json=known)
        for told in answer.raise_for_status().json():
            self._take(told)

    def _take(self, told: dict[str, Any]) -> None:
        lines = [KernelLine(**line) for line in told["kernel"]]
        node = self.nodes.get(told["name"])
        if node is None:
            self.nodes[told["name"]] = node = _new(told)
        if node.boot_id != told["boot_id"]:
            node.boot_id, node.boot_time, node.kernel = told["boot_id"], datetime.fromisoformat(told["boot_time"]), []
        node.kernel.extend(lines)
        node.power, node.agent_silent = told["power"], told["agent_silent"]
        node.gpus[:] = [Gpu(**gpu) for gpu in told["gpus"]]


def _new(told: dict[str, Any]) -> Node:
    return Node(
        name=told["name"],
        gpus=[],
        system_uuid=told["system_uuid"],
        serial=told["serial"],
        boot_id=told["boot_id"],
        boot_time=datetime.fromisoformat(told["boot_time"]),
        gpus_registered=len(told["gpus"]),
    )


async def run(socket: str, gateway: str, tokens: Path, spools: Path) -> None:
    """Live until killed."""
    transport = httpx.AsyncHTTPTransport(uds=socket, verify=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://lab", timeout=30) as client:
        mirror = Mirror(client)
        await mirror.follow()
        agents = Agents(mirror, gateway, read_tokens(tokens), disks=lambda name: DiskJournal(spools / name))
        running = asyncio.create_task(agents.run())
        log.info("agents of %d nodes live", len(mirror.nodes))
        while not running.done():
            await mirror.follow()
            agents.notice()
            await asyncio.sleep(FOLLOW_SECONDS)
        await running


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asyncio.run(run(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
