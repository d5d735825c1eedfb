"""A simulated fleet that really serves, a real store and a real reconciler, whose clock the test moves; no Temporal."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlmodel import col, select, update

from daytwo import repairs
from daytwo.adapters import Adapters
from daytwo.controller.reconcile import Reconciler
from daytwo.domain.errors import NotFound
from daytwo.domain.exchange import Run
from daytwo.domain.vocabulary import FindingStatus
from daytwo.intake import Observation, declare, observe, observe_facts
from daytwo.intents import Ledger
from daytwo.lab.definition import CLUSTER, lab_definition, node_names
from daytwo.lab.fleet import Fleet
from daytwo.lab.server import Lab
from daytwo.lab.server import now as wall
from daytwo.lab.serving import serving
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store
from daytwo.store.tables import IncidentRow, NodeRow, RepairRow

FAULT = "recovery-action"
"""The driver's word that a GPU must be reset: new work would fail, and it clears by reading."""
SPEED = 60.0


@dataclass
class Started:
    """What Temporal was asked for: the repairs that were started, by node. Their workflows do nothing.

    Those on the nodes in `gone` were terminated, until they are started anew.
    """

    runs: list[Run] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    async def start(self, run: Run, summary: str) -> bool:
        self.runs.append(run)
        self.gone.discard(run.node)
        return True

    async def look_again(self, cluster: str, node: str) -> None: ...

    async def decide(self, cluster: str, node: str, decision_id: str) -> None:
        if node in self.gone:
            raise NotFound("no repair runs on this node in Temporal")
        self.decided.append(decision_id)

    async def is_running(self, cluster: str, node: str) -> bool:
        return node not in self.gone

    @property
    def nodes(self) -> list[str]:
        return list(dict.fromkeys(run.node for run in self.runs))


class Rig:
    """A plane without workflows over a fleet."""

    def __init__(self, store: Store, lab: Lab, root: Path) -> None:
        self.store, self.lab, self.root = store, lab, root
        self.names = tuple(lab.fleet.nodes)
        self.temporal = Started()
        self.ahead = timedelta(0)
        self.started: datetime | None = None
        self.adapters = Adapters(store)
        self.reconciler = self.controller()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def controller(self) -> Reconciler:
        """Another controller over the same store, as after a crash."""
        temporal: Any = self.temporal
        ledger, notifier = Ledger(self.store, self.adapters), LogNotifier(self.root / "notices.jsonl")
        return Reconciler(
            self.store, self.adapters, ledger, temporal, notifier=notifier, guard=lambda _: None, now=self.now
        )

    def seen(self, names: Iterable[str], status: FindingStatus, fault: str = FAULT) -> None:
        """Have a fault begin or end on some nodes, all at once."""
        now = self.now()
        detail = {"recovery_action": 1} if fault == FAULT else {}
        seen = [Observation(CLUSTER, name, fault, "GPU-1", status, now, now, "test", detail=detail) for name in names]
        observe(self.store, seen, now=now)

    def broken(self, names: Iterable[str], fault: str = FAULT) -> None:
        self.seen(names, FindingStatus.FIRING, fault)

    def well(self, names: Iterable[str]) -> None:
        self.seen(names, FindingStatus.CLEARED)

    async def step(self, seconds: float = 0.0) -> None:
        """Let time pass, read the scheduler, and look."""
        self.ahead += timedelta(seconds=seconds)
        await self.read_facts()
        await self.reconciler.step()

    async def read_facts(self) -> None:
        cluster = self.adapters.cluster(CLUSTER)
        facts, started = await cluster.scheduler.facts(), await cluster.scheduler.started_at()
        before, self.started = self.started, started
        restarted = None if before is None else before != started
        await asyncio.to_thread(observe_facts, self.store, CLUSTER, facts, now=self.now(), restarted=restarted)

    async def steps(self, *seconds: float) -> None:
        for each in seconds:
            await self.step(each)

    def notices(self) -> list[dict[str, Any]]:
        """What people were told."""
        file = self.root / "notices.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def marks(self) -> dict[str, str]:
        """By node, the reason with which daytwo has drained it, as the fleet itself says."""
        nodes = self.lab.fleet.nodes.values()
        return {node.name: node.drain.reason for node in nodes if node.drain and node.drain.reason.startswith("daytwo")}

    def reservations(self) -> set[str]:
        return set(self.lab.fleet.reservations)

    def ordered(self, kind: str) -> list[str]:
        """The nodes that the fleet was told to do `kind` to."""
        return [entry.order.node for entry in self.lab.acts.log if entry.order.kind == kind]

    def incidents(self) -> list[IncidentRow]:
        with self.store.read() as session:
            return list(session.exec(select(IncidentRow).order_by(col(IncidentRow.id))))

    def repair_ids(self) -> dict[str, str]:
        with self.store.read() as session:
            return {row.node: row.id for row in session.exec(select(RepairRow))}

    def open_repair(self, node: str, repair_id: str) -> None:
        """A person opens a repair on a node."""
        with self.store.write() as session:
            row = session.get_one(NodeRow, (CLUSTER, node))
            repairs.open_row(
                session, repair_id, row, why="asked for", opened_by="cli:ann", policy_revision=1, now=self.now()
            )
            repairs.touch(session, CLUSTER, node)


@asynccontextmanager
async def a_rig(migrated: Path, *, nodes: int, policy: dict[str, Any] | None = None) -> AsyncIterator[Rig]:
    """A fleet of so many healthy nodes in racks of four, each heard of just now."""
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        root = Path(folder)
        shutil.copyfile(migrated, root / "daytwo.db")
        lab = Lab(Fleet(node_names(nodes), wall=wall, seed=7), speed=SPEED)
        store = Store(f"sqlite:///{root}/daytwo.db")
        declared = lab_definition(str(root / "lab.sock"), nodes=nodes, speed=SPEED)
        usual = declared.policy.model_copy(update=policy or {})
        declare(store, declared.model_copy(update={"policy": usual}), now=wall())
        async with serving(lab, root / "lab.sock"):
            rig = Rig(store, lab, root)
            _hear(store, rig.names, rig.now())
            await rig.step()
            yield rig
        store.close()


def _hear(store: Store, names: Collection[str], now: datetime) -> None:
    with store.write() as session:
        session.exec(update(NodeRow).where(col(NodeRow.name).in_(names)).values(last_heard_at=now))
