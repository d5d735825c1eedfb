"""An upgrade while repairs are open, in the order of docs/upgrading.md: they are gone on with by either version."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest
from temporalio.client import Client

from daytwo.domain.vocabulary import DecisionKind, State
from daytwo.lab.client import LabClient
from daytwo.lab.definition import node_names
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.temporal import Repairs
from tests.crashes.processes import Process
from tests.upgrades.earlier import Earlier, missing
from tests.workflows.plane import SPEED, Plane, environment, wait_for

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing("0.1.0")), reason=missing("0.1.0") or "it is there"),
]
S = State
NODES = 16
LONG = 100.0


@dataclass
class Upgrade:
    """A plane in the middle of its upgrade, and its nodes by when their repairs were proposed or approved."""

    plane: Plane
    nodes: dict[str, str] = field(default_factory=dict)
    ended: dict[str, State] = field(default_factory=dict)


@pytest.fixture(scope="module")
async def upgraded(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Upgrade]:
    """0.1.0 opens repairs; this version is started beside it, step by step, until it is alone."""
    root = tmp_path_factory.mktemp("upgrade")
    earlier = Earlier("0.1.0", tmp_path_factory.mktemp("0.1.0"))
    settings = await asyncio.to_thread(earlier.prepare, root, NODES)
    target = {"TEMPORAL_ADDRESS": temporal.service_client.config.target_host, "TEMPORAL_NAMESPACE": temporal.namespace}
    env = {**environment(settings), **target, "DAYTWO_LEASE_SECONDS": "2"}

    def old(module: str, *options: object) -> contextlib.AbstractContextManager[None]:
        return earlier.running(module, env, root / f"old-{module}.log", *options)

    def new(module: str) -> Process:
        return Process(module, env, root / f"new-{module}.log")

    store, tasks = Store(settings.store_url), contextlib.ExitStack()
    plane = Plane(store, temporal, settings, LabClient(str(root / "lab.sock")), list(node_names(NODES)))
    upgrade = Upgrade(plane)
    with contextlib.closing(store), tasks:
        gateway = tasks.enter_context(contextlib.ExitStack())
        gateway.enter_context(old("workers.gateway"))
        await _answers(settings.gateway_url)
        fleet = ("--socket", root / "lab.sock", "--nodes", NODES, "--speed", SPEED, "--gateway", settings.gateway_url)
        tasks.enter_context(old("daytwo.lab", *fleet, "--tokens", root / "tokens.json", "--seed", 7))
        controller, worker = (tasks.enter_context(contextlib.ExitStack()) for _ in range(2))
        controller.enter_context(old("workers.controller"))
        worker.enter_context(old("workers.control"))
        await asyncio.to_thread(wait_for, lambda: plane.lab.status() is not None, "the lab")
        await _polls(temporal, settings.task_queue)
        # The order of docs/upgrading.md: tables, gateway, controller, workers.
        await asyncio.to_thread(store.migrate)
        await _open(upgrade, "under-both", "under-the-new")
        await asyncio.to_thread(gateway.close)
        parts = {module: new(module) for module in ("workers.gateway", "workers.controller", "workers.control")}
        for part in parts.values():
            tasks.callback(part.end)
        parts["workers.gateway"].start()
        await _answers(settings.gateway_url)
        parts["workers.controller"].start()
        await asyncio.to_thread(controller.close)
        parts["workers.control"].start()
        await _open(upgrade, "begun-beside")
        await asyncio.gather(*(_repair(upgrade, name) for name in ("under-both", "begun-beside")))
        await asyncio.to_thread(worker.close)
        await _repair(upgrade, "under-the-new")
        yield upgrade


async def _answers(url: str) -> None:
    await asyncio.to_thread(wait_for, lambda: httpx.get(f"{url}/readyz", timeout=2).is_success, "the gateway")


async def _open(upgrade: Upgrade, *names: str) -> None:
    for name in names:
        upgrade.nodes[name] = await upgrade.plane.broken("xid-119")
    for name in names:
        await upgrade.plane.until(lambda name=name: _is_proposed(upgrade, name), f"{name} is proposed", LONG)


def _is_proposed(upgrade: Upgrade, name: str) -> bool:
    repair = upgrade.plane.repair(upgrade.nodes[name])
    return repair is not None and (repair.state, repair.revision) == (S.PROPOSED, 1)


async def _polls(client: Client, task_queue: str) -> None:
    """Wait until a worker asks for work: from then on it has looked at its store."""
    repairs = Repairs(client, task_queue)
    for _ in range(300):
        if await repairs.polled_at() is not None:
            return
        await asyncio.sleep(0.2)
    raise AssertionError("no worker asks for work")


async def _repair(upgrade: Upgrade, name: str) -> None:
    plane, node = upgrade.plane, upgrade.nodes[name]
    await plane.ended(await plane.decide(node, DecisionKind.APPROVE), seconds=LONG)
    repair = await plane.in_state(node, S.SUCCEEDED, S.NEEDS_HELP, seconds=LONG)
    upgrade.ended[name] = S(repair.state)


@pytest.mark.parametrize("which", ["under-both", "under-the-new", "begun-beside"])
async def test_a_repair_that_was_open_during_the_upgrade_succeeds(upgraded: Upgrade, which: str) -> None:
    node = upgraded.nodes[which]
    assert upgraded.ended[which] is S.SUCCEEDED, upgraded.plane.story(node)
    assert upgraded.plane.acts(node, "reboot") == 1


async def test_agents_of_the_version_before_are_heard_by_the_new_gateway(upgraded: Upgrade) -> None:
    assert {upgraded.plane.node(node).agent_version for node in upgraded.nodes.values()} == {"0.1.0"}
    assert "firing" not in upgraded.plane.findings(upgraded.nodes["begun-beside"]).values()


async def test_what_both_versions_wrote_is_one_audit_chain(upgraded: Upgrade) -> None:
    with upgraded.plane.store.read() as session:
        assert audit.verify(session).problem == ""


async def test_no_repair_is_stuck_in_code_that_it_was_not_begun_with(upgraded: Upgrade) -> None:
    problems = 'TemporalReportedProblems IN ("category=WorkflowTaskFailed", "category=WorkflowTaskTimedOut")'
    assert [each.id async for each in upgraded.plane.client.list_workflows(problems)] == []
