"""The reconciler over a real Slurm: its store, its looks at the scheduler, a clock that the test moves; no Temporal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from sqlmodel import select

from daytwo.adapters import Adapters
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.vocabulary import ClusterKind, FindingStatus, State
from daytwo.intake import declare
from daytwo.lab.definition import CLUSTER
from daytwo.lab.server import now as wall
from daytwo.lab.slurm_lab import SlurmLab
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, RepairRow
from tests.storms.rig import Rig, Started


class SlurmRig(Rig):
    """A plane without workflows over a lab. `repair` is the one of the node that was contained."""

    def __init__(self, store: Store, lab: SlurmLab, root: Path) -> None:
        self.store, self.slurm, self.root = store, lab, root
        self.names = lab.settings.nodes
        self.temporal = Started()
        self.ahead = timedelta(0)
        self.started = None
        self.adapters = Adapters(store)
        self.reconciler = self.controller()
        self.repair = ""

    async def contained(self, node: str, state: State = State.PROPOSED) -> str:
        """Have a node break and be contained; its repair is in this state then. Returns the repair's id."""
        await self.step()
        self.broken([node])
        await self.steps(0.5, 2)
        self.repair = self.repair_ids()[node]
        with self.store.write() as session:
            row = session.get_one(RepairRow, self.repair)
            row.state = state
            session.add(row)
        await self.step(1)
        return self.repair

    def firing(self, node: str) -> set[str]:
        """The faults that fire on a node."""
        firing = (FindingRow.node == node, FindingRow.status == FindingStatus.FIRING)
        with self.store.read() as session:
            return set(session.exec(select(FindingRow.fault).where(*firing)))


@contextmanager
def a_slurm_rig(lab: SlurmLab, migrated: Path, root: Path) -> Iterator[SlurmRig]:
    """A plane over this lab, which has looked at it once."""
    shutil.copyfile(migrated, root / "daytwo.db")
    store = Store(f"sqlite:///{root}/daytwo.db")
    group = NodeGroup(nodes=lab.settings.nodes, pool="lab", gpus=lab.settings.gpus)
    declare(
        store, ClusterDefinition(name=CLUSTER, kind=ClusterKind.SLURM, groups=(group,), slurm=lab.access), now=wall()
    )
    yield SlurmRig(store, lab, root)
    store.close()
