"""What a real slurmdbd with a real MariaDB has kept of a node is told: who drained it, who booted it, what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from daytwo.domain.errors import UnknownAnswer
from daytwo.domain.seams import Recorded
from daytwo.lab.slurm_accounting import AccountingLab
from daytwo.lab.slurm_config import LabSettings
from daytwo.lab.slurm_programs import Programs
from daytwo.schedulers import slurm_accounts as accounts
from tests.slurm.conftest import Hands

NODE, OTHER = "kept-1", "kept-2"


@pytest.fixture(scope="session")
def kept(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hands]:
    """A Slurm with accounts. Skips, saying why, where they cannot be kept."""
    if reason := programs.missing_accounting():
        pytest.skip(f"no slurmdbd here: {reason}")
    with AccountingLab(tmp_path_factory.mktemp("slurm"), LabSettings(nodes=(NODE, OTHER)), programs) as lab:
        yield Hands(lab, NODE)


async def recorded(hands: Hands, node: str, word: str) -> Recorded:
    """What is recorded of a node under this word, as soon as it is: slurmctld tells slurmdbd a moment later."""
    since = datetime.now(UTC) - timedelta(minutes=5)
    async with asyncio.timeout(20):
        while not (found := [r for r in await hands.scheduler.recorded(node, since) if word in r.what]):
            await asyncio.sleep(0.2)
    return found[-1]


async def test_who_drained_a_node_is_known_after_the_drain_is_gone(kept: Hands) -> None:
    kept.update(NODE, "drain", "psu swap | ask anna")
    await asyncio.sleep(1.1)  # events within one second are one
    kept.update(NODE, "resume")
    found = await recorded(kept, NODE, "DRAIN")
    assert (found.by, found.reason) == ("root", "psu swap | ask anna")


async def test_who_booted_a_node_is_known(kept: Hands) -> None:
    kept.lab.run("scontrol", "reboot", "reason=kernel update", OTHER)
    found = await recorded(kept, OTHER, "BOOT")
    assert (found.by, "kernel update" in found.reason) == ("root", True)


async def test_a_job_that_was_taken_off_a_node_is_known(kept: Hands) -> None:
    job = await kept.start_job(NODE, opted=False)
    kept.lab.run("scontrol", "requeue", job)
    found = await recorded(kept, NODE, f"job {job}")
    assert (found.what, found.by) == (f"job {job} REQUEUED", "root")


async def test_a_slurm_without_accounts_has_kept_nothing(hands: Hands) -> None:
    assert await hands.scheduler.recorded(hands.node, datetime.now(UTC) - timedelta(days=1)) == ()


def test_accounts_that_cannot_be_read_are_unknown() -> None:
    for read in (accounts.read_events, accounts.read_interrupted):
        with pytest.raises(UnknownAnswer):
            read("sacct: error: Problem talking to the database")


def test_jobs_that_ended_by_themselves_are_not_told() -> None:
    assert accounts.read_interrupted("7|COMPLETED|2026-11-30T19:00:00|2026-11-30T19:01:00|ann|train\n") == ()


def test_an_event_says_what_by_whom_and_how_long() -> None:
    (event,) = accounts.read_events("n1|DRAIN|2026-11-30T19:01:04|2026-11-30T19:01:05|anna(1000)|psu swap\n")
    start = datetime(2026, 11, 30, 19, 1, 4).astimezone(UTC)
    assert str(event) == f"{start:%Y-%m-%d %H:%M:%SZ} to {start:%H:%M}:05Z DRAIN by anna: psu swap"
