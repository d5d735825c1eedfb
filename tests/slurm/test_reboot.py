"""Reboots through a real Slurm: marks stay, jobs stay off, and only a new boot time is a proof."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daytwo.domain.definition import SlurmAccess
from daytwo.domain.errors import NotYet, Refused, UnknownAnswer
from daytwo.domain.seams import Act, ActKind, AlreadyDone, Command, Look, NodeFacts, NotOurs, Outcome, Ownership
from daytwo.hardware.slurm import SlurmHardware, judge
from daytwo.lab.slurm_config import LabSettings
from tests.contracts.scheduler import ANOTHER, CLUSTER, MARK, facts_of, quarantine, release, run
from tests.slurm.conftest import Hands, MakeLab

BOOTED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def reboot_of(node: str) -> Act:
    return Act(kind=ActKind.REBOOT, cluster=CLUSTER, node=node, target=node, mark=MARK)


async def send_reboot(hands: Hands) -> Act:
    """Quarantine the node and have Slurm reboot it. Returns the act with its baseline."""
    await quarantine(hands)
    act = await hands.hardware.baseline(reboot_of(hands.node))
    prepared = await hands.hardware.prepare(act)
    assert isinstance(prepared, Command)
    await run(prepared)
    return act


async def booted(hands: Hands, act: Act) -> Look:
    async with asyncio.timeout(20):
        while (look := await hands.hardware.look(act)).outcome is not Outcome.DONE:
            await asyncio.sleep(0.1)
    return look


def alone(make_lab: MakeLab, return_to_service: int) -> Iterator[Hands]:
    """A small Slurm for one test. ReturnToService is how a site lets nodes return."""
    lab = make_lab(LabSettings(nodes=("solo-1",), return_to_service=return_to_service))
    yield Hands(lab, "solo-1")
    lab.stop()


@pytest.fixture(params=[1, 2], ids=lambda value: f"ReturnToService={value}")
def own(request: pytest.FixtureRequest, make_lab: MakeLab) -> Iterator[Hands]:
    yield from alone(make_lab, request.param)


@pytest.fixture
def lenient(make_lab: MakeLab) -> Iterator[Hands]:
    yield from alone(make_lab, 2)


async def test_a_reboot_is_proven_keeps_our_marks_and_the_node_then_takes_work(own: Hands) -> None:
    act = await send_reboot(own)
    underway = await own.hardware.look(act)
    proof = await booted(own, act)
    assert (underway.outcome, proof.proof_type) == (Outcome.PENDING, "slurm-boot-time")
    # slurmd registers a second time within moments: the drain must hold for longer than that.
    await asyncio.sleep(2.5)
    assert (await facts_of(own)).ownership is Ownership.OURS
    await release_in_time(own)
    job_id = own.submit(own.node)
    await own.until(lambda: own.job_state(job_id) == "RUNNING")


async def test_after_a_reboot_that_lifts_the_drain_no_job_lands_before_it_is_written_again(own: Hands) -> None:
    await quarantine(own)
    job_id = own.submit(own.node)
    act = await own.hardware.baseline(reboot_of(own.node))
    own.lab.run("scontrol", "reboot", "ASAP", "nextstate=resume", own.node)
    await booted(own, act)
    await own.until(lambda: "DRAIN" not in own.lab.run("scontrol", "show", "node", own.node))
    lifted = await facts_of(own)
    await asyncio.sleep(1.5)  # one turn of the scheduler
    waiting = own.job_state(job_id)
    await quarantine(own)
    assert (lifted.ownership, waiting) == (Ownership.HALF_DONE, "PENDING")
    assert ((await facts_of(own)).ownership, own.job_state(job_id)) == (Ownership.OURS, "PENDING")


async def release_in_time(hands: Hands) -> None:
    """Release as the repair does: again and again while it is too early."""
    async with asyncio.timeout(20):
        while True:
            try:
                await release(hands)
                return
            except NotYet:
                await asyncio.sleep(0.3)


async def test_a_node_that_was_powered_off_while_ours_returns_whether_slurm_calls_it_down_or_not(hands: Hands) -> None:
    await quarantine(hands)
    act = await hands.hardware.baseline(reboot_of(hands.node))
    hands.lab.cut_power(hands.node)
    await asyncio.sleep(1.1)
    hands.lab.power_on(hands.node)
    await booted(hands, act)  # 22.05 calls it down now; 24.11 does not, for the node was drained
    await release_in_time(hands)
    facts = await facts_of(hands)
    assert ("DOWN" in facts.states, facts.ownership) == (False, Ownership.FREE)


async def test_a_node_that_does_not_come_back_stays_pending_and_ours(lenient: Hands) -> None:
    lenient.lab.auto_return = False
    act = await send_reboot(lenient)
    await lenient.until(lambda: "REBOOT_ISSUED" in lenient.lab.run("scontrol", "show", "node", lenient.node))
    assert (await lenient.hardware.look(act)).outcome is Outcome.PENDING
    assert (await facts_of(lenient)).ownership is Ownership.OURS
    with pytest.raises(NotYet):
        await release(lenient)


async def test_a_node_that_comes_back_without_a_gpu_is_rebooted_but_not_taken_back(lenient: Hands) -> None:
    lenient.lab.fit_gpus(lenient.node, 7)
    await booted(lenient, await send_reboot(lenient))
    facts = await facts_of(lenient)
    assert "INVALID_REG" in facts.states
    # 24.11 writes its reason, with the count, over ours: the reservation says whose the node is.
    assert (facts.gpus, facts.ownership) in ((None, Ownership.OURS), (7, Ownership.HALF_DONE))
    assert (facts.gpus_configured, facts.mark_repair_id) == (8, MARK.repair_id)
    await quarantine(lenient)
    with pytest.raises(NotYet, match="registered with less"):
        await release(lenient)


async def test_a_gpu_missing_at_registration_is_counted(hands: Hands) -> None:
    hands.lab.fit_gpus(hands.node, 7)
    hands.lab.cut_power(hands.node)
    hands.lab.power_on(hands.node, booted=False)
    await hands.until(lambda: "INVALID_REG" in hands.lab.run("scontrol", "show", "node", hands.node))
    facts = await facts_of(hands)
    hands.lab.fit_gpus(hands.node, 8)
    hands.lab.cut_power(hands.node)
    hands.lab.power_on(hands.node, booted=False)
    # 24.11 may leave an old reason there, and with it no count.
    assert (facts.gpus in (7, None), facts.gpus_configured, facts.drained_by) == (True, 8, "scheduler")


async def test_a_boot_by_another_hand_leaves_nothing_to_do(hands: Hands) -> None:
    await quarantine(hands)
    act = await hands.hardware.baseline(reboot_of(hands.node))
    hands.lab.run("scontrol", "reboot", hands.node)
    await booted(hands, act)
    assert isinstance(await hands.hardware.prepare(act), AlreadyDone)


async def test_a_node_that_is_not_ours_is_not_rebooted(hands: Hands) -> None:
    act = await hands.hardware.baseline(reboot_of(hands.node))
    free = await hands.hardware.prepare(act)
    await quarantine(hands, ANOTHER)
    another_repairs = await hands.hardware.prepare(act)
    await hands.person_drains(hands.node, "psu swap")
    a_persons = await hands.hardware.prepare(act)
    assert [type(refused) for refused in (free, another_repairs, a_persons)] == [NotOurs] * 3


async def test_a_node_that_still_runs_work_is_not_rebooted(hands: Hands) -> None:
    await hands.start_job(hands.node, opted=False)
    await quarantine(hands)
    act = await hands.hardware.baseline(reboot_of(hands.node))
    refused = await hands.hardware.prepare(act)
    assert isinstance(refused, NotOurs)
    assert "still runs work" in refused.found


async def test_a_persons_pending_reboot_is_left_alone(hands: Hands) -> None:
    await hands.start_job(hands.node, opted=False)
    await quarantine(hands)
    act = await hands.hardware.baseline(reboot_of(hands.node))
    hands.lab.run("scontrol", "reboot", "reason=kernel update", hands.node)
    refused = await hands.hardware.prepare(act)
    hands.lab.run("scontrol", "cancel_reboot", hands.node)
    assert isinstance(refused, NotOurs)
    assert "kernel update" in refused.found


async def test_an_old_boot_time_proves_nothing_until_the_reboot_is_off_the_table(hands: Hands) -> None:
    await hands.start_job(hands.node, opted=False)
    act = await hands.hardware.baseline(reboot_of(hands.node))
    hands.lab.run("scontrol", "reboot", hands.node)
    requested = await hands.hardware.look(act)
    hands.lab.run("scontrol", "cancel_reboot", hands.node)
    cancelled = await hands.hardware.look(act)
    assert (requested.outcome, cancelled.outcome) == (Outcome.PENDING, Outcome.NOT_DONE)


async def test_without_a_reboot_program_a_reboot_is_refused(hands: Hands, tmp_path: Path) -> None:
    real = hands.lab.access.bin
    (tmp_path / "sinfo").symlink_to(f"{real}/sinfo")
    (tmp_path / "scontrol").write_text(
        f'#!/bin/sh\n{real}/scontrol "$@" | sed "s/^\\(RebootProgram *= \\).*/\\1(null)/"\n'
    )
    (tmp_path / "scontrol").chmod(0o755)
    hardware = SlurmHardware(SlurmAccess(bin=str(tmp_path), conf=str(hands.lab.conf)), CLUSTER)
    with pytest.raises(Refused, match="RebootProgram"):
        await hardware.prepare(reboot_of(hands.node))


async def test_a_baseline_without_a_boot_time_is_unknown(lenient: Hands) -> None:
    lenient.update(lenient.node, "down", "psu swap")
    lenient.update(lenient.node, "resume")  # until it registers again, Slurm gives 0
    lenient.lab.cut_power(lenient.node)
    with pytest.raises(UnknownAnswer, match="when it booted"):
        await lenient.hardware.baseline(reboot_of(lenient.node))


def facts(*states: str, boots_later: float | None = 0) -> NodeFacts:
    booted_at = None if boots_later is None else BOOTED + timedelta(seconds=boots_later)
    silent = "NOT_RESPONDING" in states
    rebooting = bool({"REBOOT_REQUESTED", "REBOOT_ISSUED"} & set(states))
    return NodeFacts(
        node="n1", states=states, boot_time=booted_at, responding=not silent, rebooting=rebooting, at=BOOTED
    )


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (facts("IDLE", "DRAIN", boots_later=90), Outcome.DONE),
        (facts("DOWN", "DRAIN", "REBOOT_ISSUED", "INVALID_REG", boots_later=90), Outcome.DONE),
        (facts("DOWN", boots_later=90), Outcome.DONE),
        (facts("IDLE", "DRAIN", "NOT_RESPONDING", boots_later=90), Outcome.PENDING),
        (facts("DOWN", "DRAIN", "REBOOT_ISSUED"), Outcome.PENDING),
        (facts("MIXED", "DRAIN", "REBOOT_REQUESTED"), Outcome.PENDING),
        (facts("DOWN", "NOT_RESPONDING", boots_later=None), Outcome.PENDING),
        (facts("IDLE", "DRAIN", boots_later=2), Outcome.NOT_DONE),
        (facts("IDLE", "DRAIN", boots_later=-1), Outcome.NOT_DONE),
        (facts("IDLE", "DRAIN", boots_later=None), Outcome.UNCLEAR),
        (facts("DOWN", "DRAIN"), Outcome.UNCLEAR),
    ],
    ids=lambda value: "+".join(value.states) if isinstance(value, NodeFacts) else str(value),
)
def test_a_reboot_is_judged_by_boot_time_flags_and_silence(seen: NodeFacts, outcome: Outcome) -> None:
    act = reboot_of("n1").model_copy(update={"baseline": {"boot_time": BOOTED.isoformat()}})
    assert judge(act, seen).outcome is outcome
