"""A real slurmctld that was just started cannot know who is silent: no node is found down then, nor taken for back."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import select

from daytwo.controller.leases import acquire
from daytwo.controller.loops import Clock
from daytwo.controller.watch import Watch
from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.errors import Failed
from daytwo.domain.vocabulary import ClusterKind
from daytwo.intake import declare
from daytwo.lab.slurm_config import LabSettings
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow
from tests.slurm.conftest import Hands, MakeLab

NODE = "solo-1"
LATE = 3


class Watched:
    """A Slurm of one node, as the controller watches it."""

    def __init__(self, store: Store, hands: Hands) -> None:
        clock = Clock()
        group = NodeGroup(nodes=(NODE,))
        declare(store, ClusterDefinition(name="east", kind=ClusterKind.SLURM, groups=(group,)), now=clock.now())
        lease = acquire(store, "watch:east", "me", now=clock.now(), seconds=600)
        assert lease is not None
        self.store, self.hands = store, hands
        self.watch = Watch(store, "east", hands.scheduler, lease, unknown_after_seconds=60, clock=clock)

    def found(self) -> set[str]:
        """What is said of the node's silence: firing, or cleared."""
        silence = select(FindingRow.status).where(FindingRow.fault == "slurm-down")
        with self.store.read() as session:
            return set(session.exec(silence))

    async def until(self, status: str, *, resumed: bool = False) -> None:
        """Watch until that is so; `resumed`: somebody resumes the node whenever Slurm lets them."""
        async with asyncio.timeout(40):
            while self.found() != {status}:
                if resumed:
                    with contextlib.suppress(Failed):  # it is refused where Slurm has nothing to lift
                        self.hands.update(NODE, "resume")
                await self.watch.step()
                await asyncio.sleep(0.2)

    async def restart(self, *options: str) -> None:
        self.hands.lab.stop_controller()
        await asyncio.sleep(1.0)
        self.hands.lab.start_controller(*options)


@pytest.fixture
def watched(make_lab: MakeLab, migrated_file: Path, tmp_path: Path) -> Iterator[Watched]:
    lab = make_lab(LabSettings(nodes=(NODE,), slurmd_timeout=LATE))
    store = Store(f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'daytwo.db')}")
    yield Watched(store, Hands(lab, NODE))
    store.close()
    lab.stop()


@pytest.fixture
async def dead(watched: Watched) -> Watched:
    """A node that Slurm has given up."""
    await watched.watch.step()
    watched.hands.lab.cut_power(NODE)
    await watched.until("firing")
    return watched


@pytest.mark.parametrize("options", [(), ("-c",)], ids=["state kept", "state lost"])
async def test_a_dead_node_stays_down_over_a_restart_of_slurmctld_until_it_is_heard(
    dead: Watched, options: tuple[str, ...]
) -> None:
    await dead.restart(*options)
    for _ in range(3 * LATE):
        await dead.watch.step()
        assert (dead.found(), (await dead.hands.scheduler.node(NODE)).responding) == ({"firing"}, False)
        await asyncio.sleep(0.5)
    dead.hands.lab.power_on(NODE)
    await dead.until("cleared", resumed=True)
