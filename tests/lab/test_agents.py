"""The real agent core on simulated nodes, against the real gateway over HTTP."""

from __future__ import annotations

import asyncio
import socket as sockets
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest
from sqlmodel import col, select

from daytwo.gateway.app import Gateway, create_app
from daytwo.gateway.identity import issue_token
from daytwo.intake import declare
from daytwo.lab.agents import Agents
from daytwo.lab.definition import CLUSTER, lab_definition
from daytwo.lab.faults import Break
from daytwo.lab.fleet import Fleet
from daytwo.lab.main import moving
from daytwo.lab.server import Lab, now
from daytwo.lab.serving import serving_app
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRow

NODES = ("node-01", "node-02", "node-03")
SOON = 2.0
"""Seconds from the break to the row, at most."""


@pytest.fixture
def declared(store: Store) -> Store:
    declare(store, lab_definition("/unused.sock", nodes=len(NODES)), now=datetime.now(UTC))
    return store


@pytest.fixture
async def gateway_url(declared: Store) -> AsyncIterator[str]:
    listener = sockets.create_server(("127.0.0.1", 0))
    async with serving_app(create_app(Gateway(declared)), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
async def lab(declared: Store, gateway_url: str) -> AsyncIterator[Lab]:
    """Three nodes with agents that the gateway has heard."""
    served = Lab(Fleet(NODES, wall=now, seed=7), speed=60)
    tokens = {name: issue_token(declared, CLUSTER, name, now=datetime.now(UTC)) for name in NODES}
    async with moving(served, Agents(served.fleet, gateway_url, tokens)):
        await until(lambda: all(node(declared, name).inventory for name in NODES))
        yield served


def node(store: Store, name: str) -> NodeRow:
    with store.read() as session:
        return session.exec(select(NodeRow).where(NodeRow.name == name)).one()


def firing(store: Store, name: str) -> dict[str, str]:
    """Return the entity of each firing fault of a node."""
    with store.read() as session:
        query = select(FindingRow).where(FindingRow.node == name, FindingRow.status == "firing")
        return {row.fault: row.entity for row in session.exec(query.order_by(col(FindingRow.id)))}


async def until(holds: Callable[[], bool], *, seconds: float = SOON) -> None:
    """Wait for something that is to become true in time."""
    async with asyncio.timeout(seconds):
        while True:
            if await asyncio.to_thread(holds):
                return
            await asyncio.sleep(0.02)


async def test_a_node_tells_who_it_is_and_what_it_has(lab: Lab, store: Store) -> None:
    seen, real = node(store, "node-02"), lab.fleet.node("node-02")
    assert (seen.boot_id, seen.identity["serial"]) == (real.boot_id, real.serial)
    assert [gpu["uuid"] for gpu in seen.inventory["gpus"]] == [gpu.uuid for gpu in real.gpus]


async def test_a_break_becomes_a_finding_on_its_gpu_within_two_seconds(lab: Lab, store: Store) -> None:
    lab.fleet.break_node("node-02", Break(fault="xid-79", gpu=5))
    await until(lambda: "xid-79" in firing(store, "node-02"))
    assert firing(store, "node-02")["xid-79"] == lab.fleet.node("node-02").gpus[5].uuid


async def test_a_gpu_that_falls_off_the_bus_is_seen_by_nvml_too(lab: Lab, store: Store) -> None:
    lab.fleet.break_node("node-02", Break(fault="xid-79", gpu=5))
    await until(lambda: "gpu-off-bus" in firing(store, "node-02"), seconds=5)
    assert firing(store, "node-02")["gpu-off-bus"] == lab.fleet.node("node-02").gpus[5].uuid


async def test_a_node_that_booted_speaks_with_its_new_boot_id(lab: Lab, store: Store) -> None:
    real = lab.fleet.node("node-03")
    before = node(store, "node-03").boot_id
    lab.fleet.boot(real, "reboot")
    lab.skip(700)
    await until(lambda: node(store, "node-03").boot_id != before)
    assert node(store, "node-03").boot_id == real.boot_id


async def test_old_kernel_lines_are_not_reported_again_after_a_boot(lab: Lab, store: Store) -> None:
    lab.fleet.break_node("node-02", Break(fault="xid-13"))
    await until(lambda: "xid-13" in firing(store, "node-02"))
    lab.fleet.boot(lab.fleet.node("node-02"), "reboot")
    lab.skip(600)
    lab.fleet.break_node("node-02", Break(fault="xid-31"))
    await until(lambda: "xid-31" in firing(store, "node-02"))
    with store.read() as session:
        assert session.exec(select(FindingRow.count).where(FindingRow.fault == "xid-13")).one() == 1


async def test_a_silent_agent_says_nothing_and_catches_up_later(lab: Lab, store: Store) -> None:
    lab.fleet.break_node("node-02", Break(fault="agent-silent"))
    await asyncio.sleep(0.2)
    lab.fleet.break_node("node-02", Break(fault="xid-79"))
    await asyncio.sleep(0.5)
    silent = firing(store, "node-02")
    lab.fleet.node("node-02").agent_silent = False
    await until(lambda: "xid-79" in firing(store, "node-02"))
    assert silent == {}


async def test_a_node_speaks_only_with_its_own_token(declared: Store, gateway_url: str) -> None:
    served = Lab(Fleet(NODES, wall=now, seed=7), speed=60)
    token = issue_token(declared, CLUSTER, "node-01", now=datetime.now(UTC))
    async with moving(served, Agents(served.fleet, gateway_url, {"node-01": token, "node-02": token})):
        await until(lambda: node(declared, "node-01").last_heard_at is not None)
        await asyncio.sleep(0.3)
    assert node(declared, "node-02").last_heard_at is None
