"""A whole control plane for tests: real Temporal, real store, real gateway, and a simulated fleet in its own process.

One per test session; each test takes a node that no other test has touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
from temporalio.client import Client
from temporalio.worker import Worker

from daytwo.adapters import Adapters
from daytwo.controller.reconcile import Reconciler
from daytwo.domain.policy import Approval, Breaker, Budget, Person
from daytwo.domain.vocabulary import Channel, DecisionKind, State
from daytwo.gateway.identity import issue_token
from daytwo.intake import declare, observe_facts
from daytwo.intents import Ledger
from daytwo.lab.client import LabClient
from daytwo.lab.definition import CLUSTER, lab_definition, node_names
from daytwo.notify.log import LogNotifier
from daytwo.service.decisions import DecisionRequest, Identity, decide
from daytwo.settings import Settings
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, RepairRow
from daytwo.temporal import Repairs, TemporalDelivery
from tests.workflows.seen import Seen
from workers.control import build

V = TypeVar("V")

LEAD = Identity(actor="cli:ann", channel=Channel.CLI, verified=True)
OPERATOR = Identity(actor="cli:oli", channel=Channel.CLI, verified=True)
NOBODY = Identity(actor="cli:eve", channel=Channel.CLI, verified=True)
NODES = 90
SPEED = 300.0


class Plane(Seen):
    """Handles on everything, and the few things that tests do over and over."""

    def take(self) -> str:
        """A node that nobody has touched."""
        return self.free.pop(0)

    async def broken(self, fault: str = "xid-79", **options: Any) -> str:
        """Break a fresh node and return it."""
        node = options.pop("node", None) or self.take()
        await asyncio.to_thread(self.lab.break_node, node, fault, **options)
        return node

    async def until(self, question: Callable[[], V], what: str, seconds: float = 30.0) -> V:
        """Ask until the answer is true, and return it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if answer := await asyncio.to_thread(question):
                return answer
            await asyncio.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {what}")

    async def in_state(self, node: str, *states: State, seconds: float = 30.0) -> RepairRow:
        """Wait until the newest repair of `node` is in one of these states."""

        def reached() -> RepairRow | None:
            row = self.repair(node)
            return row if row is not None and row.state in states else None

        try:
            return await self.until(reached, f"{node} in {states}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(node)}") from None

    async def proposed(self, node: str, revision: int = 1) -> RepairRow:
        """Wait until `revision` of the node's repair has been announced."""

        def announced() -> RepairRow | None:
            row = self.repair(node)
            ready = row is not None and row.state == State.PROPOSED and row.revision >= revision
            return row if ready else None

        try:
            return await self.until(announced, f"{node} proposed, revision {revision}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(node)}") from None

    async def busy(self) -> str:
        """A node that nobody has touched, with the job on it that has longest to run."""
        node = await self.until(self.busiest, "a job on a node that nobody has touched", 60.0)
        self.free.remove(node)
        return node

    def by_hand(self, node: str, kind: str, **more: Any) -> None:
        """Do something to a node as somebody else does."""
        self.ask_lab("POST", "/acts", {"kind": kind, "node": node, "by": "bob", **more})

    async def decide(self, node: str, kind: DecisionKind, asker: Identity = LEAD, **more: Any) -> str:
        """Decide as a person does, on the revision that stands; returns the id of the row."""
        decision_id = await self.written(node, kind, asker, **more)
        delivery = TemporalDelivery(self.store, Repairs(self.client, self.settings.task_queue))
        with contextlib.suppress(Exception):  # what is not delivered now is delivered by the reconciler
            await delivery.deliver(decision_id)
        return decision_id

    async def written(
        self, node: str, kind: DecisionKind, asker: Identity = LEAD, *, revision: int | None = None, **more: Any
    ) -> str:
        """Write a decision and deliver it to nobody; returns the id of the row."""
        repair = self.repair(node)
        assert repair is not None
        request = DecisionRequest(
            request_id=str(uuid.uuid4()),
            repair_id=more.pop("repair_id", repair.id),
            revision=repair.revision if revision is None else revision,
            kind=kind,
            reason=more.pop("reason", "test"),
            **more,
        )
        return (await asyncio.to_thread(decide, self.store, asker, request, datetime.now(UTC))).id

    async def approved(self, node: str, **more: Any) -> None:
        """Approve what is proposed, and see it accepted."""
        await self.proposed(node)
        row = await self.ended(await self.decide(node, DecisionKind.APPROVE, **more))
        assert row.status == "accepted", row.status_reason

    async def ended(self, decision_id: str, seconds: float = 20.0) -> DecisionRow:
        """Wait until a decision is accepted, refused or void."""

        def answer() -> DecisionRow | None:
            with self.store.read() as session:
                row = session.get_one(DecisionRow, decision_id)
            return row if row.status != "pending" else None

        return await self.until(answer, f"decision {decision_id} ended", seconds)


@contextlib.asynccontextmanager
async def a_plane(root: Path, client: Client, *, nodes: int = NODES) -> AsyncIterator[Plane]:
    """Start everything; the worker and the controller's loops run in this process."""
    async with a_world(root, client, nodes=nodes) as plane, control(plane):
        yield plane


@contextlib.asynccontextmanager
async def a_world(
    root: Path, client: Client, *, nodes: int = NODES, store_url: str | None = None
) -> AsyncIterator[Plane]:
    """Store, gateway and fleet, without anything that repairs."""
    settings = prepared(root, nodes, store_url)
    with contextlib.ExitStack() as processes:
        _start_gateway(processes, settings)
        start_lab(processes, settings, nodes)
        store = Store(settings.store_url)
        processes.callback(store.close)
        yield Plane(store, client, settings, LabClient(str(root / "lab.sock")), list(node_names(nodes)))


@contextlib.asynccontextmanager
async def control(plane: Plane) -> AsyncIterator[None]:
    """The worker and the controller's loops, in this process."""
    adapters = Adapters(plane.store)
    async with a_worker(plane):
        loops = [asyncio.create_task(_reconcile(plane, adapters)), asyncio.create_task(_watch(plane, adapters))]
        yield
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)


def prepared(root: Path, nodes: int, store_url: str | None = None) -> Settings:
    """Settings of a new plane; its store has all tables and the declared cluster, and nothing runs yet."""
    settings = Settings(
        state_dir=root,
        store_url=store_url or f"sqlite:///{root}/daytwo.db",
        service_socket=root / "service.sock",
        gateway_url=f"http://127.0.0.1:{free_port()}",
        task_queue=f"tests-{uuid.uuid4().hex[:8]}",
    )
    store = Store(settings.store_url)
    store.migrate()
    _declare(store, root, nodes)
    store.close()
    return settings


def a_worker(plane: Plane) -> Worker:
    """A control worker on this plane's queue, in this process."""
    return build(plane.client, plane.settings, plane.store)


async def _reconcile(plane: Plane, adapters: Adapters) -> None:
    reconciler = Reconciler(
        plane.store,
        adapters,
        Ledger(plane.store, adapters),
        Repairs(plane.client, plane.settings.task_queue),
        notifier=LogNotifier(plane.settings.state_dir / "notices.jsonl"),
        guard=lambda session: None,
        now=lambda: datetime.now(UTC),
        sweep=timedelta(seconds=3),
    )
    while True:
        try:
            await reconciler.step()
        except Exception as error:  # a test reads what went wrong from the story
            plane.problems.append(error)
        await asyncio.sleep(0.05)


async def _watch(plane: Plane, adapters: Adapters) -> None:
    while True:
        try:
            cluster = await asyncio.to_thread(adapters.cluster, CLUSTER)
            facts = await cluster.scheduler.facts()
            await asyncio.to_thread(observe_facts, plane.store, CLUSTER, facts, now=datetime.now(UTC))
        except Exception as error:
            plane.problems.append(error)
        await asyncio.sleep(0.3)


def _declare(store: Store, root: Path, nodes: int) -> None:
    usual = lab_definition(str(root / "lab.sock"), nodes=nodes, speed=SPEED)
    people = (
        Person(name="ann", roles=("lead",), identities=("cli:ann",)),
        Person(name="oli", roles=("operator",), identities=("cli:oli",)),
    )
    policy = usual.policy.model_copy(
        update={
            "approval": Approval(people=people),
            "budget": Budget(
                acting_share=1,
                acting_nodes=nodes,
                acting_per_domain=nodes,
                containing_share=1,
                containing_nodes=nodes,
                interruptions_per_hour=1000,
                interruption_apart_seconds=0,
            ),
            "breaker": Breaker(nodes=nodes, pool_nodes=nodes, pool_share=1),
            "timing": usual.policy.timing.model_copy(update={"settle_seconds": 1.2, "settle_at_most_seconds": 4}),
        }
    )
    declare(store, usual.model_copy(update={"policy": policy}), now=datetime.now(UTC))
    tokens = {name: issue_token(store, CLUSTER, name, now=datetime.now(UTC)) for name in node_names(nodes)}
    (root / "tokens.json").write_text(json.dumps(tokens))


def _start_gateway(processes: contextlib.ExitStack, settings: Settings) -> None:
    _start(processes, settings, "gateway", "workers.gateway")
    wait_for(lambda: httpx.get(f"{settings.gateway_url}/readyz", timeout=2).is_success, "the gateway")


def start_lab(processes: contextlib.ExitStack, settings: Settings, nodes: int) -> None:
    """The fleet with its agents, until the stack ends."""
    root = settings.state_dir
    options = ["--socket", root / "lab.sock", "--nodes", nodes, "--speed", SPEED, "--gateway", settings.gateway_url]
    _start(processes, settings, "lab", "daytwo.lab", *options, "--tokens", root / "tokens.json", "--seed", 7)
    wait_for(lambda: (root / "lab.sock").exists() and LabClient(str(root / "lab.sock")).status() is not None, "the lab")


def _start(processes: contextlib.ExitStack, settings: Settings, name: str, module: str, *options: object) -> None:
    log = processes.enter_context((settings.state_dir / f"{name}.log").open("wb"))
    child = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, options)], env=environment(settings), stdout=log, stderr=log
    )
    processes.callback(child.wait)
    processes.callback(child.terminate)


def environment(settings: Settings) -> dict[str, str]:
    """What a process of this plane is started with."""
    return {
        **os.environ,
        "DAYTWO_STATE_DIR": str(settings.state_dir),
        "DAYTWO_STORE_URL": settings.store_url,
        "DAYTWO_GATEWAY_URL": settings.gateway_url,
        "DAYTWO_TASK_QUEUE": settings.task_queue,
        "DAYTWO_PULSE_SECONDS": "2",
        "DAYTWO_STICKY_SECONDS": "1",
    }


def wait_for(question: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Ask until the answer is true; an error is a no."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            if question():
                return
        time.sleep(0.05)
    raise AssertionError(f"{what} did not start")


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
