"""A scheduler's boot time comes from the node's clock. The agent's boot id tells a clock that was set from a boot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities import others
from activities.assess import AssessActivities
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Adapters, Cluster
from daytwo.domain.exchange import AssessInput, RepairRef, StepInput
from daytwo.domain.seams import NodeFacts, Ownership
from daytwo.domain.vocabulary import Action, State
from daytwo.intake import declare
from daytwo.intents import Ledger
from daytwo.lab.definition import CLUSTER, lab_definition
from daytwo.lab.server import Lab
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from tests.builders import a_proposal

NODE = "node-01"
NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
REF = RepairRef(repair_id="r-20261130-030000-abcde", cluster=CLUSTER, node=NODE)


class Says:
    """The scheduler's word on a node that carries our marks."""

    def __init__(self, facts: NodeFacts) -> None:
        self.facts = facts

    async def node(self, node: str) -> NodeFacts:
        return self.facts


class Looking:
    """A node that booted a day ago, and whose boot time has moved since by an hour."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        adapters = Adapters(store)
        self.world = World(store, adapters, Ledger(store, adapters), LogNotifier(folder / "n.jsonl"), lambda: NOW)
        self.booted = NOW - 24 * HOUR
        self.one_machine = False

    def heard(self, at: datetime = NOW, *, boot_id: str = "b1", skew: timedelta = HOUR) -> None:
        with self.store.write() as session:
            row = session.get_one(NodeRow, (CLUSTER, NODE))
            row.boot_id, row.last_heard_at, row.clock_skew_seconds = boot_id, at, skew.total_seconds()

    async def cluster(self, booted: datetime) -> Cluster:
        known = await self.world.cluster(REF)
        marks: dict[str, Any] = {"ownership": Ownership.OURS, "mark_repair_id": REF.repair_id, "drained_by": "ours"}
        facts = NodeFacts(node=NODE, states=("IDLE", "DRAIN"), boot_time=booted, at=NOW, **marks)
        slurm = known.definition.slurm.model_copy(update={"one_machine": self.one_machine})
        definition = known.definition.model_copy(update={"slurm": slurm})
        scheduler: Any = Says(facts)
        return known._replace(scheduler=scheduler, definition=definition)

    def step(self, since: datetime) -> StepInput:
        proposal = a_proposal(boot_id="b1", boot_time=self.booted)
        return StepInput(ref=REF, stage="drain-1", action=Action.REBOOT, proposal=proposal, since=since)

    async def before_a_drain(self, booted: datetime) -> bool:
        cluster = await self.cluster(booted)
        facts = await cluster.scheduler.node(NODE)
        return await others.booted_since(self.world, cluster, self.step(NOW), facts)

    async def before_an_act(self, booted: datetime) -> bool:
        """Asked in a step that began before the boot that is told of."""
        cluster = await self.cluster(booted)
        return bool(await others.act_after_others(self.world, cluster, self.step(booted - timedelta(seconds=9))))

    async def in_a_look(self, booted: datetime) -> bool:
        """With the boot time of the lab, against one that is as much older."""
        real = (await (await self.world.cluster(REF)).scheduler.node(NODE)).boot_time
        assert real is not None
        proposal = a_proposal(boot_id="b1", boot_time=real - (booted - self.booted))
        asked = AssessInput(ref=REF, state=State.WAITING, revision=1, rung=4, disturbed=False, proposal=proposal)
        return (await AssessActivities(self.world).assess(asked)).booted


@pytest.fixture
def looking(store: Store, lab: Lab, socket: str, tmp_path: Path) -> Looking:
    declare(store, lab_definition(socket, nodes=16, speed=1), now=NOW)
    with store.write() as session:
        row = session.get_one(NodeRow, (CLUSTER, NODE))
        repairs.open_row(session, REF.repair_id, row, why="test", opened_by="policy", policy_revision=1, now=NOW)
    return Looking(store, tmp_path)


LOOKS = ["before_a_drain", "before_an_act", "in_a_look"]


@pytest.mark.parametrize("look", LOOKS)
async def test_a_boot_time_that_moved_while_the_agent_spoke_on_is_no_boot(looking: Looking, look: str) -> None:
    looking.heard()
    assert not await getattr(looking, look)(looking.booted + HOUR)


@pytest.mark.parametrize("look", LOOKS)
async def test_an_agent_that_speaks_from_another_boot_has_booted(looking: Looking, look: str) -> None:
    looking.heard(boot_id="b2")
    assert await getattr(looking, look)(looking.booted + HOUR)


@pytest.mark.parametrize("look", LOOKS)
async def test_an_agent_that_was_not_heard_since_may_have_booted(looking: Looking, look: str) -> None:
    looking.heard(NOW - 9999 * HOUR, skew=timedelta(0))
    assert await getattr(looking, look)(looking.booted + HOUR)


@pytest.mark.parametrize("look", LOOKS[:2])
async def test_a_clock_that_shows_the_future_is_compared_with_itself(looking: Looking, look: str) -> None:
    looking.booted = NOW - HOUR / 2
    looking.heard()
    assert not await getattr(looking, look)(NOW + HOUR / 2)


@pytest.mark.parametrize("look", LOOKS[:2])
async def test_nodes_that_share_a_kernel_have_only_their_boot_times(looking: Looking, look: str) -> None:
    looking.one_machine = True
    looking.heard()
    assert await getattr(looking, look)(looking.booted + HOUR)
