"""The real agent core on every simulated node, in the lab's own loop, each with its own token to the real gateway.

`daytwo.lab.main` runs `Agents` beside the server. A node that loses its power or falls silent drops its agent as it is;
one that boots gets a new agent with the new boot id. What the agent had spooled stays on the node's disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import httpx

from daytwo.agent.core import Agent, AgentSettings, Seams
from daytwo.agent.journal import MemoryJournal
from daytwo.agent.seams import Journal
from daytwo.agent.spool import Spool
from daytwo.lab.node_seams import (
    LINK_TIMEOUT_SECONDS,
    HttpLink,
    SimulatedClock,
    SimulatedCollector,
    SimulatedGpus,
    SimulatedKernelLog,
)
from daytwo.lab.world import PRODUCT, Node

log = logging.getLogger(__name__)

SHORTEST_PAUSE: Final = 0.005
RESTART_SECONDS: Final = 1.0
"""After a crash, as its service manager would."""

GPU_POLL_SECONDS: Final = 2.0
"""Faster than on a real node, whose GPUs are asked once a minute: a demonstration is short."""


class HasNodes(Protocol):
    """A fleet, or what another process sees of one."""

    nodes: dict[str, Node]


def in_memory(_: str) -> Journal:
    """A disk that lives as long as this process."""
    return MemoryJournal()


class Agents:
    """The agents of all nodes that have a token; `disks` gives each node, by name, the place of its spool."""

    def __init__(
        self,
        fleet: HasNodes,
        gateway_url: str,
        tokens: Mapping[str, str],
        *,
        disks: Callable[[str], Journal] = in_memory,
    ) -> None:
        self._gateway_url = gateway_url
        mine = {name: node for name, node in fleet.nodes.items() if name in tokens}
        self._nodes = [NodeAgent(node, tokens[name], disks(name)) for name, node in mine.items()]

    def notice(self) -> None:
        """Wake the agents on whose node something happened. Call it whenever the fleet has moved."""
        for agent in self._nodes:
            agent.notice()

    async def run(self) -> None:
        """Run until cancelled."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=len(self._nodes))
        timeout = httpx.Timeout(LINK_TIMEOUT_SECONDS)
        async with (
            httpx.AsyncClient(base_url=self._gateway_url, timeout=timeout, limits=limits) as client,
            asyncio.TaskGroup() as group,
        ):
            for agent in self._nodes:
                group.create_task(agent.run(client))


class NodeAgent:
    """The agent of one node, over its boots."""

    def __init__(self, node: Node, token: str, disk: Journal) -> None:
        self._node = node
        self._token = token
        self._disk = disk
        self._wake = asyncio.Event()
        self._seen: tuple[object, ...] = ()

    def notice(self) -> None:
        """Wake the agent if its node booted, went away, came back, or its kernel printed something."""
        node = self._node
        seen = (node.boot_id, node.up, node.agent_silent, len(node.kernel))
        if seen != self._seen:
            self._seen = seen
            self._wake.set()

    async def run(self, client: httpx.AsyncClient) -> None:
        """Live through one boot after the other, until cancelled."""
        while True:
            if self._may_run(self._node.boot_id):
                await self._live(client)
            else:
                await self._wait(None)

    def _may_run(self, boot_id: str) -> bool:
        return self._node.up and not self._node.agent_silent and self._node.boot_id == boot_id

    async def _live(self, client: httpx.AsyncClient) -> None:
        node, boot_id = self._node, self._node.boot_id
        link = HttpLink(client, node.name, token=self._token, wake=self._wake.set)
        try:
            agent = self._new_agent(link)
            while self._may_run(boot_id):
                await self._wait(max(SHORTEST_PAUSE, agent.step()))
        except Exception:
            log.exception("%s: the agent crashed; it starts again in %s s", node.name, RESTART_SECONDS)
            await asyncio.sleep(RESTART_SECONDS)
        finally:
            await link.cut()

    def _new_agent(self, link: HttpLink) -> Agent:
        node = self._node
        settings = AgentSettings(
            node=node.name,
            boot_id=node.boot_id,
            identity={"system_uuid": node.system_uuid, "serial": node.serial, "product": PRODUCT},
            expected_gpus=len(node.gpus),
            gpu_poll_seconds=GPU_POLL_SECONDS,
        )
        seams = Seams(
            log=SimulatedKernelLog(node),
            gpus=SimulatedGpus(node),
            link=link,
            collector=SimulatedCollector(node),
            clock=SimulatedClock(node),
            say=lambda line: log.info("%s: %s", node.name, line),
        )
        return Agent(settings, seams, Spool(self._disk))

    async def _wait(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()
