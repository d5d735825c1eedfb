"""Whose marks are on a node: every row of the truth table on a real slurmctld, and whose a reason is."""

from __future__ import annotations

import asyncio

import pytest

from daytwo.domain.seams import Ownership
from daytwo.domain.vocabulary import Mark
from daytwo.lab.slurm_config import LabSettings
from daytwo.schedulers import slurm_marks as marks
from tests.contracts.scheduler import ANOTHER, CLUSTER, MARK, carry_out, facts_of, quarantine, release
from tests.slurm.conftest import Hands, MakeLab

SYSTEM = frozenset({"root", "slurm"})


@pytest.mark.parametrize("row", marks.OWNERSHIP, ids=lambda row: f"reserved={row[0]} drain={row[1]} by={row[2]}")
async def test_every_row_of_the_truth_table_holds_on_a_real_slurm(
    hands: Hands, row: tuple[bool, bool, marks.DrainedBy]
) -> None:
    _, drain, by = row
    await arrange(hands, *row)
    facts = await facts_of(hands)
    assert ("DRAIN" in facts.states, facts.drained_by, facts.ownership) == (drain, by, marks.OWNERSHIP[row])


async def arrange(hands: Hands, reserved: bool, drain: bool, by: marks.DrainedBy) -> None:
    reserve = hands.scheduler.quarantine_acts(CLUSTER, hands.node, MARK)[: int(reserved)]
    if by != "scheduler":
        await carry_out(hands, reserve)
    await take_out(hands, drain, by)
    if by == "scheduler":
        await carry_out(hands, reserve)


async def take_out(hands: Hands, drain: bool, by: marks.DrainedBy) -> None:
    """Drain the node, or set it down, in somebody's name."""
    if by == "scheduler":
        await (hands.scheduler_drains(hands.node) if drain else unexpected_reboot(hands))
    elif by != "nobody":
        hands.update(hands.node, "drain" if drain else "down", MARK.reason if by == "ours" else "psu swap")


async def unexpected_reboot(hands: Hands, tries: int = 3) -> None:
    """Slurm overlooks a boot where its ping is answered before the node has registered: then the node boots again."""
    hands.lab.cut_power(hands.node)
    await asyncio.sleep(2.1)  # Slurm compares whole seconds, and a boot time that moves by one
    hands.lab.power_on(hands.node)
    try:
        await hands.until(lambda: hands.lab.states()[hands.node] == "DOWN", seconds=10)
    except TimeoutError:
        if tries == 1:
            raise
        await unexpected_reboot(hands, tries - 1)


async def test_a_reservation_of_another_repair_does_not_make_a_drain_whole(hands: Hands) -> None:
    await carry_out(hands, hands.scheduler.quarantine_acts(CLUSTER, hands.node, ANOTHER)[:1])
    hands.update(hands.node, "drain", MARK.reason)
    facts = await facts_of(hands)
    assert (facts.ownership, facts.mark_repair_id) == (Ownership.HALF_DONE, MARK.repair_id)


@pytest.mark.parametrize(
    ("reason", "user", "by"),
    [
        ("Kill task failed", "root", "scheduler"),
        ("Kill task failed (JobId=12 StepId=0)", "slurm", "scheduler"),
        ("gres/gpu count reported lower than configured (7 < 8)", "root", "scheduler"),
        ("gres/gpu count too low (7 < 8)", "root", "scheduler"),
        ("Low RealMemory (reported:1031000 < 100.00% of configured:2063000)", "root", "scheduler"),
        ("Prolog error", "root", "scheduler"),
        ("Kill task failed", "anna", "person"),
        ("kill the fan noise", "root", "person"),
        ("Reboot ASAP", "root", "person"),
        ("nhc: Health check failed: check_gpu_xid", "root", "person"),
        ("", "root", "person"),
        (MARK.reason, "root", "ours"),
        (f"{MARK.reason} : reboot issued", "root", "ours"),
        ("daytwo", "root", "person"),
        ("ask anna about daytwo r-1: x", "root", "person"),
    ],
)
def test_a_reason_tells_who_drained_a_node(reason: str, user: str, by: str) -> None:
    assert marks.drained_by(("IDLE", "DRAIN"), reason, user, SYSTEM) == by


@pytest.mark.parametrize(("states", "by"), [(("DOWN",), "scheduler"), (("IDLE", "FAIL"), "person")])
def test_our_reason_without_our_drain_is_one_that_was_left_behind(states: tuple[str, ...], by: str) -> None:
    assert marks.drained_by(states, MARK.reason, "root", SYSTEM) == by


async def test_a_node_that_falls_long_after_its_repair_is_not_taken_for_ours(make_lab: MakeLab) -> None:
    lab = make_lab(LabSettings(nodes=("solo-1",)))
    hands = Hands(lab, "solo-1")
    await quarantine(hands)
    await release(hands)
    await hands.until(lambda: hands.lab.states()[hands.node] == "IDLE", seconds=30)
    # Slurm forgets when the node booted until it registers again.
    await hands.until(lambda: "BootTime=None" not in hands.lab.run("scontrol", "show", "node", hands.node))
    await unexpected_reboot(hands)
    facts = await facts_of(hands)
    lab.stop()
    assert (facts.drained_by, facts.ownership, facts.mark_repair_id) == ("scheduler", Ownership.FREE, None)


def test_a_reason_left_behind_on_a_node_in_service_says_nothing() -> None:
    assert marks.drained_by(("IDLE",), "psu swap", "anna", SYSTEM) == "nobody"


def test_an_adopted_reason_survives_a_mark_that_is_too_long() -> None:
    long = Mark(repair_id=MARK.repair_id, text="x" * 500)
    reason = marks.adopting_reason(long, "Kill task failed")
    assert reason.endswith("(was: Kill task failed)")
    assert len(reason) <= marks.REASON_CHARS


@pytest.mark.parametrize(
    ("states", "reason", "believed"),
    [
        (("IDLE",), "", 8),
        (("IDLE", "DRAIN", "INVALID_REG"), "gres/gpu count reported lower than configured (7 < 8)", 7),
        (("IDLE", "DRAIN", "INVALID_REG"), f"{MARK.reason} (was: gres/gpu count too low (6 < 8))", None),
        (("IDLE", "DRAIN", "INVALID_REG"), "Low RealMemory", None),
    ],
)
def test_slurm_believes_in_the_gpus_of_the_last_good_registration(
    states: tuple[str, ...], reason: str, believed: int | None
) -> None:
    assert marks.believed_gpus(8, states, reason) == believed
