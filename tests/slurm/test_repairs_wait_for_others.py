"""A repair on a real Slurm waits for others, says for whom, and does nothing that they have done already."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlmodel import select
from temporalio.exceptions import ApplicationError

from activities.hardware import HardwareActivities
from activities.scheduler import SchedulerActivities
from activities.world import World
from daytwo import repairs
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.vocabulary import Action, State
from daytwo.intents import Ledger
from daytwo.lab.definition import CLUSTER
from daytwo.lab.slurm_config import LabSettings
from daytwo.notify.log import LogNotifier
from daytwo.store.tables import DecisionRow, IntentRow
from tests.rows import keep
from tests.slurm.conftest import Hands, MakeLab
from tests.slurm.rig import SlurmRig, a_slurm_rig

NODE = "solo-1"


@dataclass
class Repair:
    """A repair whose node is quarantined, and the activities by which it goes on."""

    rig: SlurmRig
    world: World
    ref: RepairRef
    since: datetime

    def step(self, stage: str) -> StepInput:
        return StepInput(ref=self.ref, stage=stage, action=Action.REBOOT, since=self.since, disturbed=True)

    async def may_act(self) -> tuple[bool, str]:
        right = await SchedulerActivities(self.world).take_right(self.step("right"))
        return right.granted, right.text

    def waits_for(self) -> str:
        with self.rig.store.read() as session:
            return repairs.waiting_for(session, self.ref.repair_id)

    def acts(self) -> list[str]:
        with self.rig.store.read() as session:
            return [row.kind for row in session.exec(select(IntentRow))]


@pytest.fixture
def alone(make_lab: MakeLab) -> Iterator[Hands]:
    lab = make_lab(LabSettings(nodes=(NODE,)))
    yield Hands(lab, NODE)
    lab.stop()


@pytest.fixture
async def repair(alone: Hands, migrated_file: Path, tmp_path: Path) -> Iterator[Repair]:
    with a_slurm_rig(alone.lab, migrated_file, tmp_path) as rig:
        ident = await rig.contained(NODE, State.WAITING)
        ledger, notifier = Ledger(rig.store, rig.adapters), LogNotifier(tmp_path / "notices.jsonl")
        world = World(rig.store, rig.adapters, ledger, notifier)
        yield Repair(rig, world, RepairRef(repair_id=ident, cluster=CLUSTER, node=NODE), datetime.now(UTC))


async def test_a_repair_waits_for_a_maintenance_that_somebody_began_over_our_marks(
    repair: Repair, alone: Hands
) -> None:
    alone.reserve(NODE, "psu-swap")
    granted, _ = await repair.may_act()
    assert not granted
    assert repair.waits_for().startswith("waits for others: root has reserved it for maintenance: psu-swap, until")


async def test_a_repair_goes_on_when_the_maintenance_of_others_has_ended(repair: Repair, alone: Hands) -> None:
    alone.reserve(NODE, "psu-swap")
    await repair.may_act()
    alone.lab.run("scontrol", "delete", "ReservationName=psu-swap")
    assert ((await repair.may_act())[0], repair.waits_for()) == (True, "")


async def test_a_repair_waits_for_a_reboot_that_somebody_asked_for(repair: Repair, alone: Hands) -> None:
    alone.lab.auto_return = False
    alone.lab.run("scontrol", "reboot", NODE)
    granted, text = await repair.may_act()
    assert (granted, text.startswith("waits for others: somebody has asked for a reboot")) == (False, True)


async def test_a_reboot_whose_reason_stands_over_ours_is_asked_about(repair: Repair, alone: Hands) -> None:
    alone.lab.auto_return = False
    alone.lab.run("scontrol", "reboot", "reason=kernel update", NODE)
    with pytest.raises(ApplicationError, match="kernel update") as caught:
        await repair.may_act()
    assert caught.value.type == "Foreign"


async def test_a_node_that_somebody_booted_meanwhile_is_not_booted_again(repair: Repair, alone: Hands) -> None:
    alone.lab.run("scontrol", "reboot", NODE)
    async with asyncio.timeout(20):
        while not (done := await tried(repair)):
            await asyncio.sleep(0.2)
    assert ("booted by another hand" in done, "reboot" in repair.acts()) == (True, False)


async def tried(repair: Repair) -> str:
    """What proves the act, or nothing while it waits."""
    with contextlib.suppress(ApplicationError):
        return (await HardwareActivities(repair.world).act(repair.step("act"))).proof
    return ""


async def rivals(repair: Repair, alone: Hands) -> str:
    """Have a health check drain and resume the node, and give our marks back. Returns what the repair says then."""
    alone.update(NODE, "drain", "NHC: check_hw_gm")
    await repair.rig.steps(1)
    alone.update(NODE, "resume")
    await repair.rig.steps(1)
    await SchedulerActivities(repair.world).mark(await repair.world.cluster(repair.ref), repair.step("again"))
    try:
        return (await repair.may_act())[1]
    except ApplicationError as error:
        return str(error)


async def test_a_repair_stops_where_a_rival_acts_and_names_it(repair: Repair, alone: Hands) -> None:
    said = await rivals(repair, alone)
    assert "root drained it over our marks: NHC: check_hw_gm" in said
    assert "nothing is done to it until somebody decides" in said


async def test_a_repair_goes_on_when_somebody_decided_after_the_rival_acted(repair: Repair, alone: Hands) -> None:
    await rivals(repair, alone)
    word = {"id": "d-1", "request_id": "d-1", "repair_id": repair.ref.repair_id, "revision": 1, "kind": "retry"}
    row = DecisionRow(**word, actor="cli:ann", channel="cli", verified=True, at=repair.rig.now(), status="accepted")
    keep(repair.rig.store, row)
    assert (await repair.may_act())[0]


async def test_a_node_that_was_taken_out_of_the_configuration_in_the_middle_is_told(
    repair: Repair, alone: Hands
) -> None:
    alone.lab.rename(NODE, "solo-2")
    with pytest.raises(ApplicationError, match="does not know it") as caught:
        await SchedulerActivities(repair.world).drain(repair.step("drain"))
    assert (caught.value.type, caught.value.non_retryable) == ("NotFound", True)
