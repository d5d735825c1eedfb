"""A control plane in which every part is a process that may die: worker, two controllers, gateway, fleet."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from sqlmodel import col, select
from temporalio.client import Client

from daytwo.domain.vocabulary import FindingStatus, State
from daytwo.lab.client import LabClient
from daytwo.lab.definition import node_names
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, LeaseRow
from tests.crashes.processes import Process, spin
from tests.workflows.plane import Plane, environment, prepared, start_lab, wait_for

NODES: Final = 44
SEND_SECONDS: Final = 2.0
LEASE_SECONDS: Final = 2.0
RECOVERY_SECONDS: Final = 110.0
"""A try that died with its worker is made again after seconds; then comes the rest of the repair, on a busy machine."""
OPT_IN: Final = "daytwo-requeue"
ENDED: Final = (State.SUCCEEDED, State.NEEDS_HELP, State.DISMISSED, State.AUTO_RESOLVED)


class Ending(NamedTuple):
    """How a repair has ended, for the fleet and for the store."""

    state: str
    reboots: int
    marks: list[str]
    firing: list[str]
    unproven: list[str]
    audit: str


SOUND: Final = Ending(State.SUCCEEDED, reboots=1, marks=[], firing=[], unproven=[], audit="")


@dataclass
class LivingPlane(Plane):
    """A plane with handles on its processes."""

    parts: dict[str, Process] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Nodes whose repairs have been proposed, for whoever needs one."""

    @property
    def worker(self) -> Process:
        """The only control worker."""
        return self.parts["worker"]

    @property
    def gateway(self) -> Process:
        """The only gateway."""
        return self.parts["gateway"]

    def restart(self, part: Process) -> None:
        """Kill a process with -9 and start it again."""
        part.kill()
        part.start()

    def quiet(self) -> str:
        """An untouched node on which nothing runs but, at most, one job whose owner allows a requeue."""
        jobs = {name: job for job in self._running() for name in job["nodes"]}
        node = next(name for name in reversed(self.free) if name not in jobs or _may_be_requeued(jobs[name]))
        self.free.remove(node)
        return node

    def at_work(self) -> str:
        """An untouched node with the one job that has longest to run, of those whose owner allows a requeue."""
        jobs = [job for job in self._running() if _may_be_requeued(job) and job["nodes"][0] in self.free]
        node: str = max(jobs, key=lambda job: job["time_limit_seconds"] - job["elapsed_seconds"])["nodes"][0]
        self.free.remove(node)
        return node

    def _running(self) -> list[dict[str, Any]]:
        return [row for row in self.ask_lab("GET", "/jobs")["jobs"] if row["nodes"]]

    async def faulty(self) -> str:
        """A node whose repair has been proposed."""
        if not self.waiting:
            await self.have_faulty(1)
        return self.waiting.pop()

    async def have_faulty(self, count: int) -> None:
        """Break so many quiet nodes, and wait for what is proposed."""
        nodes = [self.quiet() for _ in range(count)]
        await asyncio.gather(*(self.broken(node=node) for node in nodes))
        await asyncio.gather(*(self.proposed(node) for node in nodes))
        await self.until(lambda: all(self.announced(node) for node in nodes), "all are announced")
        self.waiting += nodes

    def announced(self, node: str) -> bool:
        """True when people have been told of the node's repair: its workflow only listens from then on."""
        repair, notices = self.repair(node), self.settings.state_dir / "notices.jsonl"
        return repair is not None and notices.exists() and repair.id in notices.read_text()

    def state(self, node: str) -> str:
        """The state of the newest repair, or nothing."""
        repair = self.repair(node)
        return repair.state if repair else ""

    def reboot(self, node: str) -> IntentRow | None:
        """The newest intent to boot the node."""
        with self.store.read() as session:
            mine = select(IntentRow).where(IntentRow.node == node, IntentRow.kind == "reboot")
            return session.exec(mine.order_by(col(IntentRow.created_at).desc())).first()

    def leader(self) -> Process:
        """The controller that reconciles."""
        with self.store.read() as session:
            lease = session.get_one(LeaseRow, "reconcile")
        pid = int(lease.holder.split(":")[1])
        return next(part for part in self.parts.values() if part.pid == pid)

    def outage(self, mode: str, path: str = "/") -> None:
        """Let the scheduler fail in this way, until the next word."""
        self.ask_lab("POST", "/outage", {"mode": mode, "path": path})

    def reservations(self, node: str) -> list[str]:
        """The reservations on a node, from the fleet itself."""
        found: list[str] = self.ask_lab("GET", f"/nodes/{node}")["nodes"][0]["reservations"]
        return found

    async def the_moment(self, question: Callable[[], object], then: Callable[[], None]) -> None:
        """Do `then` the moment that the answer is true."""

        def watch() -> None:
            spin(question, "the moment to strike")
            then()

        await asyncio.to_thread(watch)

    async def ending(self, node: str, seconds: float = RECOVERY_SECONDS) -> Ending:
        """Wait for the end of the node's repair; what it has left."""
        repair = await self.in_state(node, *ENDED, seconds=seconds)
        return Ending(
            state=repair.state,
            reboots=self.acts(node, "reboot"),
            marks=sorted(self.scheduler_states(node) & {"DRAIN", "DOWN"}) + self.reservations(node),
            firing=[fault for fault, status in self.findings(node).items() if status == FindingStatus.FIRING],
            unproven=[f"{kind} {state}" for kind, state in self.intents(node) if state != "proven"],
            audit=self.audit_problem(),
        )

    def audit_problem(self) -> str:
        """What is wrong with the audit chain."""
        with self.store.read() as session:
            return audit.verify(session).problem

    def story(self, node: str) -> str:
        """Everything that helps when a test fails."""
        return "\n".join([super().story(node), *(f"-- {name}\n{part.told()}" for name, part in self.parts.items())])

    def late_reboots(self, node: str) -> list[str]:
        """When the fleet was told to boot the node after the deadline of the last try."""
        intent = self.reboot(node)
        assert intent is not None
        assert intent.deadline is not None
        entries = [e for e in self.ask_lab("GET", "/acts/log") if e["order"]["node"] == node]
        at = [datetime.fromisoformat(e["at"]) for e in entries if e["order"]["kind"] == "reboot"]
        return [str(when) for when in at if when > intent.deadline]

    def is_locked(self) -> bool:
        """True while somebody else holds the store's write lock."""
        try:
            with locked(self.settings.state_dir / "daytwo.db", patience=0):
                return False
        except sqlite3.OperationalError:
            return True

    @contextlib.contextmanager
    def locked_store(self) -> Iterator[None]:
        """Keep every other writer out of the store while the block lasts."""
        with locked(self.settings.state_dir / "daytwo.db"):
            yield


def _may_be_requeued(job: dict[str, Any]) -> bool:
    return OPT_IN in job["comment"] and len(job["nodes"]) == 1


@contextlib.contextmanager
def locked(database: Path, *, patience: float = 10.0) -> Iterator[None]:
    """Hold the write lock of a SQLite store while the block lasts."""
    connection = sqlite3.connect(database, timeout=patience, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


@contextlib.asynccontextmanager
async def a_living_plane(root: Path, client: Client) -> AsyncIterator[LivingPlane]:
    """Start every part as a process."""
    settings = prepared(root, NODES)
    env = {**environment(settings), **_where_temporal_is(client), **_short_waits()}
    parts = {
        "gateway": Process("workers.gateway", env, root / "gateway.log"),
        "worker": Process("workers.control", env, root / "worker.log"),
        "controller-1": Process("workers.controller", env, root / "controller-1.log"),
        "controller-2": Process("workers.controller", env, root / "controller-2.log"),
    }
    with contextlib.ExitStack() as stack:
        for part in parts.values():
            stack.callback(part.end)
            part.start()
        await asyncio.to_thread(
            wait_for, lambda: httpx.get(f"{settings.gateway_url}/readyz", timeout=2).is_success, "the gateway"
        )
        await asyncio.to_thread(start_lab, stack, settings, NODES)
        store = Store(settings.store_url)
        stack.callback(store.close)
        yield LivingPlane(
            store, client, settings, LabClient(str(root / "lab.sock")), list(node_names(NODES)), parts=parts
        )


def _where_temporal_is(client: Client) -> dict[str, str]:
    return {
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "TEMPORAL_NAMESPACE": client.namespace,
    }


def _short_waits() -> dict[str, str]:
    return {
        "DAYTWO_SEND_SECONDS": str(SEND_SECONDS),
        "DAYTWO_LEASE_SECONDS": str(LEASE_SECONDS),
        "DAYTWO_PULSE_SECONDS": "5",
    }
