"""operations.md, rule 20, on a real slurmctld: marks that are gone were lost by a restart, or taken off by a person."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.domain.seams import NodeFacts, Ownership
from daytwo.domain.vocabulary import State
from daytwo.lab.definition import CLUSTER
from daytwo.lab.slurm_config import LabSettings
from tests.slurm.conftest import Hands, MakeLab
from tests.slurm.rig import SlurmRig, a_slurm_rig

NODE = "solo-1"


@pytest.fixture
def alone(make_lab: MakeLab) -> Iterator[Hands]:
    """A Slurm whose controller the test restarts."""
    lab = make_lab(LabSettings(nodes=(NODE,)))
    yield Hands(lab, NODE)
    lab.stop()


@pytest.fixture
def rig(alone: Hands, migrated_file: Path, tmp_path: Path) -> Iterator[SlurmRig]:
    with a_slurm_rig(alone.lab, migrated_file, tmp_path) as rig:
        yield rig


async def restart(hands: Hands, *options: str) -> None:
    """Restart slurmctld, in another second than before: it says when it was started in whole ones."""
    hands.lab.stop_controller()
    await asyncio.sleep(1.0)
    hands.lab.start_controller(*options)
    await hands.until(lambda: "State=UNKNOWN" not in hands.lab.run("scontrol", "show", "node", NODE))


async def seen(rig: SlurmRig) -> NodeFacts:
    return await rig.adapters.cluster(CLUSTER).scheduler.node(NODE)


async def test_marks_survive_a_restart_that_keeps_its_state_and_nothing_is_written(rig: SlurmRig, alone: Hands) -> None:
    await rig.contained(NODE)
    await restart(alone)
    await rig.steps(1, 2, 61)
    assert ((await seen(rig)).ownership, rig.notices()) == (Ownership.OURS, [])


@pytest.mark.parametrize("state", [State.PROPOSED, State.HELD])
async def test_marks_that_a_restart_without_state_has_lost_are_written_again(
    rig: SlurmRig, alone: Hands, state: State
) -> None:
    repair = await rig.contained(NODE, state)
    await restart(alone, "-c")
    lost = await seen(rig)  # the drain; reservations survive `-c`
    await rig.steps(1, 2)
    facts = await seen(rig)
    assert (lost.ownership, facts.ownership, facts.mark_repair_id) == (Ownership.HALF_DONE, Ownership.OURS, repair)
    assert [notice["subject"] for notice in rig.notices()] == [f"{NODE}: contained again"]


async def test_a_person_who_resumes_our_node_is_asked_and_not_overruled(rig: SlurmRig, alone: Hands) -> None:
    await rig.contained(NODE)
    alone.update(NODE, "resume")
    await rig.steps(1, 2, 61)
    assert (await seen(rig)).ownership is Ownership.HALF_DONE
    assert "nothing is written on it until you decide" in [notice["text"] for notice in rig.notices()][-1]


async def test_a_reservation_that_a_person_deleted_is_not_made_again(rig: SlurmRig, alone: Hands) -> None:
    repair = await rig.contained(NODE)
    alone.lab.run("scontrol", "delete", f"ReservationName=daytwo-{repair}")
    await rig.steps(1, 2, 61)
    assert (await seen(rig)).reservations == ()


async def test_a_node_that_a_person_resumes_long_after_a_restart_is_not_drained_again(
    rig: SlurmRig, alone: Hands
) -> None:
    await rig.contained(NODE)
    await restart(alone)
    await rig.steps(1, 61)
    alone.update(NODE, "resume")
    await rig.steps(1, 2, 61)
    assert (await seen(rig)).ownership is Ownership.HALF_DONE


async def test_a_health_check_that_drains_and_resumes_by_itself_is_a_rival(rig: SlurmRig, alone: Hands) -> None:
    await rig.contained(NODE)
    alone.update(NODE, "drain", "NHC: check_hw_gm failed")
    await rig.steps(1, 2)
    alone.update(NODE, "resume")
    await rig.steps(1, 2)
    assert rig.firing(NODE) >= {"foreign-act", "rival-healer"}
