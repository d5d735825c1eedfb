"""What Slurm's programs print is read, or is unknown: it is never taken for "no nodes" or "no jobs"."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daytwo.domain.definition import SlurmAccess
from daytwo.domain.errors import TryAgain, UnknownAnswer, Unreachable
from daytwo.schedulers import slurm_text
from daytwo.schedulers.slurm import SlurmScheduler
from daytwo.schedulers.slurm_cli import SlurmCli
from daytwo.schedulers.slurm_reservations import reserved
from tests.slurm.conftest import CLUSTER, Hands

FakePrograms = Callable[[str], SlurmAccess]

UNREADABLE = {
    "nothing": "exit 0",
    "garbage": "printf '\\001\\377\\000garbage'",
    "a header only": "echo 'NODELIST STATE'",
    "an error on stdout": "echo 'slurm_load_jobs error: Unable to contact slurm controller'",
    "an error with a status": "echo 'slurm_load_node error: Zero Bytes were transmitted' >&2; exit 1",
    "half of the JSON": """echo '{"errors": [], "nodes": [{"name": "gpu-c1", "state": "id'""",
    "another document": """echo '{"errors": [], "sinfo": []}'""",
    "rows without their fields": """echo '{"errors": [], "nodes": [{"name": "gpu-c1"}], "jobs": [{"job_id": 4}]}'""",
    "errors inside": """echo '{"errors": [{"error": "Socket timed out", "errno": 5004}], "nodes": [], "jobs": []}'""",
    "death by a signal": "kill -9 $$",
    "a program that cannot run": "exit 127",
}


@pytest.fixture
def fake_programs(tmp_path: Path) -> FakePrograms:
    """Programs that all do the same, except that `scontrol --version` answers as a real one does."""

    def make(body: str) -> SlurmAccess:
        for name in ("scontrol", "sinfo", "squeue"):
            script = f'#!/bin/sh\n[ "$1" = --version ] && echo "slurm-wlm 22.05.8" && exit 0\n{body}\n'
            (tmp_path / name).write_text(script)
            (tmp_path / name).chmod(0o755)
        return SlurmAccess(bin=str(tmp_path))

    return make


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_an_unreadable_answer_is_unknown_never_empty(fake_programs: FakePrograms, body: str) -> None:
    cli = SlurmCli(fake_programs(body), CLUSTER)
    for read in (cli.nodes, cli.jobs, cli.reservations, cli.config):
        with pytest.raises((UnknownAnswer, Unreachable), match=r"Slurm|exit status|answered nothing"):
            await read()


async def test_no_jobs_is_an_answer_but_no_nodes_is_not(fake_programs: FakePrograms) -> None:
    cli = SlurmCli(fake_programs("""echo '{"errors": [], "jobs": [], "nodes": []}'"""), CLUSTER)
    assert await cli.jobs() == ()
    with pytest.raises(UnknownAnswer):
        await cli.nodes()


async def test_a_program_that_hangs_is_given_up_and_ended(fake_programs: FakePrograms) -> None:
    cli = SlurmCli(fake_programs("exec sleep 30"), CLUSTER, read_seconds=0.2)
    with pytest.raises(Unreachable, match=r"no answer within 0\.2 s"):
        await cli.jobs()


async def test_absent_programs_are_an_unreachable_slurm(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="cannot be started"):
        await SlurmScheduler(SlurmAccess(bin=str(tmp_path / "nowhere")), CLUSTER).facts()


async def test_a_node_that_is_missing_from_the_list_is_unknown_as_long_as_slurm_knows_it(
    hands: Hands, tmp_path: Path
) -> None:
    (tmp_path / "scontrol").symlink_to("/usr/bin/scontrol")
    (tmp_path / "sinfo").write_text(f'#!/bin/sh\nsinfo --json | sed \'s/"{hands.node}"/"other"/\'\n')
    (tmp_path / "sinfo").chmod(0o755)
    scheduler = SlurmScheduler(SlurmAccess(bin=str(tmp_path), conf=str(hands.lab.conf)), CLUSTER)
    with pytest.raises(UnknownAnswer, match=f"list of nodes lacks '{hands.node}'"):
        await scheduler.node(hands.node)


async def test_errors_of_reading_are_tried_again(fake_programs: FakePrograms) -> None:
    with pytest.raises(TryAgain):
        await SlurmScheduler(fake_programs("echo oops"), CLUSTER).workloads(["gpu-c1"])


@pytest.mark.parametrize(
    ("hostlist", "names"),
    [
        ("n1", ("n1",)),
        ("", ()),
        ("n1,login-2.site", ("n1", "login-2.site")),
        ("gpu-[001-003,007],x", ("gpu-001", "gpu-002", "gpu-003", "gpu-007", "x")),
        ("gpu-[8-11]", ("gpu-8", "gpu-9", "gpu-10", "gpu-11")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
    ],
)
def test_host_lists_are_expanded(hostlist: str, names: tuple[str, ...]) -> None:
    assert slurm_text.expand(hostlist) == names


@pytest.mark.parametrize("hostlist", ["n[1-", "n[a-b]", "n[1-999999999]", "(null)", "n[]", "n1 n2"])
def test_a_malformed_host_list_is_unknown(hostlist: str) -> None:
    with pytest.raises(UnknownAnswer):
        slurm_text.expand(hostlist)


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("", 0),
        ("gpu:8", 8),
        ("gpu:h100:8(S:0-1)", 8),
        ("gpu:h100:4(IDX:0-1,6-7),nvme:2", 4),
        ("gpu:a100:6,gpu:a100_3g.20gb:4", 10),
        ("gpu", 1),
        ("nvme:2,gpumem:80", 0),
    ],
)
def test_gpus_are_counted_in_gres(gres: str, gpus: int) -> None:
    assert slurm_text.count_gpus(gres) == gpus


@pytest.mark.parametrize(
    "text", ["ReservationName=a Nodes", "nodes=n1", "ReservationName=a State=ACTIVE", "slurm_load_reservations error"]
)
def test_malformed_reservations_are_unknown(text: str) -> None:
    with pytest.raises(UnknownAnswer):
        slurm_text.read_reservations(text)


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (datetime(2026, 12, 1, tzinfo=UTC), "; 63 of its 64 nodes are left without this one"),
        (datetime(2026, 12, 3, tzinfo=UTC), ""),
    ],
    ids=["it is to come", "it has begun"],
)
def test_a_reservation_to_come_says_how_many_nodes_it_is_left_with(now: datetime, says: str) -> None:
    day, nodes = datetime(2026, 12, 2, tzinfo=UTC), tuple(f"n{number}" for number in range(64))
    held = slurm_text.SlurmReservation("llm", nodes, "alice", frozenset(), start=day, end=day + timedelta(days=2))
    assert reserved([held], now).partition("until 2026-12-04 00:00Z")[2] == says
