"""Others' hands on a real Slurm: what they do is seen for what it is, and never undone or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.domain.errors import NotFound, NotYet
from daytwo.domain.others_hands import before_our_act, is_switched_off, others_work
from daytwo.domain.seams import Act, ActKind, AlreadyDone, NodeFacts, Outcome, Ownership
from daytwo.lab.slurm_config import LabSettings
from tests.contracts.scheduler import CLUSTER, MARK, facts_of, quarantine
from tests.slurm.conftest import Hands, MakeLab

SAVING = """\
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=3600
PrivateData=cloud
NodeName=cloud-1 NodeAddr=127.0.0.1 Port=1 CPUs=16 RealMemory=64000 State=CLOUD
"""
FEATURES = "Feature=nps1 Helper={helper}\nFeature=nps4 Helper={helper}\nMutuallyExclusive=nps1,nps4\n"
HELPER = '#!/bin/sh\n[ -n "$1" ] && echo "$1" > {folder}/feature; cat {folder}/feature 2>/dev/null || echo nps1\n'


async def test_a_node_that_somebody_reserved_for_maintenance_is_left_alone(hands: Hands) -> None:
    hands.reserve(hands.node, "psu-swap")
    facts = await facts_of(hands)  # the flag MAINTENANCE comes seconds later
    assert "root has reserved it for maintenance: psu-swap, until" in others_work(facts)


async def test_a_maintenance_that_begins_over_our_marks_is_waited_for(hands: Hands) -> None:
    await quarantine(hands)
    hands.reserve(hands.node, "psu-swap")
    facts = await facts_of(hands)
    assert (facts.ownership, "psu-swap" in before_our_act(facts)) == (Ownership.OURS, True)


@pytest.mark.parametrize(
    ("flags", "start", "says"),
    [
        ("maint,ignore_jobs", "now+2hours", "reserved for maintenance by root: plan from"),
        ("ignore_jobs", "now", "reserved for root: plan, until"),
    ],
    ids=["a maintenance to come", "a reservation for work"],
)
async def test_a_reservation_that_keeps_nobody_off_now_is_shown_and_not_waited_for(
    hands: Hands, flags: str, start: str, says: str
) -> None:
    hands.reserve(hands.node, "plan", flags=flags, start=start)
    facts = await facts_of(hands)
    assert (says in facts.reserved, others_work(facts)) == (True, "")


async def test_a_node_that_somebody_marked_as_failing_is_theirs(hands: Hands) -> None:
    hands.update(hands.node, "fail", "ask anna")
    facts = await facts_of(hands)
    hands.update(hands.node, "resume")
    assert (facts.ownership, others_work(facts)) == (Ownership.FOREIGN, "root has taken the node: ask anna")


@pytest.mark.parametrize("how", [(), ("ASAP",)], ids=["when idle", "as soon as possible"])
async def test_somebodys_pending_reboot_is_waited_for(hands: Hands, how: tuple[str, ...]) -> None:
    await hands.start_job(hands.node, opted=False)
    hands.lab.run("scontrol", "reboot", *how, "reason=kernel update", hands.node)
    facts = await facts_of(hands)
    hands.lab.run("scontrol", "cancel_reboot", hands.node)
    assert "kernel update" in others_work(facts)


async def test_somebodys_reboot_under_our_marks_is_neither_undone_nor_done_twice(hands: Hands) -> None:
    await quarantine(hands)
    act = Act(kind=ActKind.REBOOT, cluster=CLUSTER, node=hands.node, target=hands.node, mark=MARK)
    act = await hands.hardware.baseline(act)
    hands.lab.run("scontrol", "reboot", hands.node)
    pending = await facts_of(hands)
    with pytest.raises(NotYet, match="already under way"):
        await hands.hardware.prepare(act)
    async with asyncio.timeout(20):
        while (await hands.hardware.look(act)).outcome is not Outcome.DONE:
            await asyncio.sleep(0.1)
    assert before_our_act(pending).startswith("somebody has asked for a reboot")
    assert isinstance(await hands.hardware.prepare(act), AlreadyDone)


@pytest.fixture
def saving(make_lab: MakeLab) -> Iterator[Hands]:
    """A Slurm that saves power: one node runs, another is switched off."""
    lab = make_lab(LabSettings(nodes=("solo-1",), extra=SAVING))
    yield Hands(lab, "solo-1")
    lab.stop()


@pytest.fixture
def changing(make_lab: MakeLab, tmp_path: Path) -> Iterator[Hands]:
    """A Slurm that boots a node where a job asks for other features."""
    helper = tmp_path / "helper"
    helper.write_text(HELPER.format(folder=tmp_path))
    helper.chmod(0o755)
    files = {"helpers.conf": FEATURES.format(helper=helper)}
    plugin = "NodeFeaturesPlugins=node_features/helpers"
    lab = make_lab(LabSettings(nodes=("solo-1",), extra=plugin, files=files))
    yield Hands(lab, "solo-1")
    lab.stop()


async def state_seen(hands: Hands, word: str, node: str | None = None) -> NodeFacts:
    """The node's facts as soon as Slurm shows this state."""
    async with asyncio.timeout(20):
        while word not in (facts := await hands.scheduler.node(node or hands.node)).states:
            await asyncio.sleep(0.05)
    return facts


async def test_a_node_that_slurm_switched_off_to_save_power_is_not_broken(saving: Hands) -> None:
    off = await saving.scheduler.node("cloud-1")
    saving.update("solo-1", "power_down")
    going = await state_seen(saving, "POWERING_DOWN")
    saving.update("cloud-1", "power_up")
    coming = await state_seen(saving, "POWERING_UP", "cloud-1")
    assert [is_switched_off(facts) for facts in (off, going, coming)] == [True] * 3
    assert all("to save power" in others_work(facts) for facts in (off, going))


async def test_a_node_that_slurm_boots_for_other_features_is_not_acted_on(changing: Hands) -> None:
    before = await facts_of(changing)
    changing.submit(changing.node, "--constraint=nps4")
    booting = await state_seen(changing, "POWERING_UP")
    assert "boots it for other features" in others_work(booting)
    await changing.until(lambda: "POWERING_UP" not in changing.lab.run("scontrol", "show", "node", changing.node))
    after = await facts_of(changing)
    assert before.boot_time is not None
    assert after.boot_time is not None
    assert after.boot_time > before.boot_time


async def test_a_node_that_somebody_took_out_of_the_configuration_is_gone_and_not_empty(make_lab: MakeLab) -> None:
    lab = make_lab(LabSettings(nodes=("solo-1", "solo-2")))
    hands = Hands(lab, "solo-2")
    await quarantine(hands)
    lab.rename("solo-2", "solo-3")
    for ask in (hands.scheduler.node("solo-2"), hands.scheduler.workloads(["solo-2"])):
        with pytest.raises(NotFound, match="does not know it"):
            await ask
    assert [facts.node for facts in await hands.scheduler.facts()] == ["solo-1", "solo-3"]
    lab.stop()
