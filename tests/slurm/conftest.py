"""Real Slurms to test against, and hands that do what people and Slurm itself do to nodes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from daytwo.domain.errors import Failed
from daytwo.hardware.slurm import SlurmHardware
from daytwo.lab.slurm_config import LabSettings
from daytwo.lab.slurm_lab import SlurmLab
from daytwo.lab.slurm_programs import INSTALLED, Programs
from daytwo.schedulers.slurm import SlurmScheduler

UNPACKED = Path(__file__).parents[2] / ".cache/slurm-24.11"
NODES = tuple(f"gpu-c{number}" for number in range(1, 9))
CLUSTER = "contract"

MakeLab = Callable[..., SlurmLab]


BOTH = ("test_accounts", "test_contract", "test_marks", "test_others_hands", "test_reboot")
"""Modules whose tests run on every Slurm that is here; the others ask nothing that differs between releases."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have the tests on real Slurms run on one of them or on both."""
    if "programs" in metafunc.fixturenames:
        both = metafunc.module.__name__.rpartition(".")[2] in BOTH
        metafunc.parametrize("programs", ["installed", *(["24.11"] if both else [])], indirect=True, scope="session")


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Programs:
    """The Slurm that is installed, and the newer one if it was unpacked. Skips, saying why, what is not here."""
    programs = INSTALLED if request.param == "installed" else Programs(tree=UNPACKED)
    if reason := programs.missing():
        get = "" if request.param == "installed" else "; to get it: scripts/debian-packages.sh slurm-24.11"
        pytest.skip(f"no real Slurm here: {reason}{get}")
    return programs


@pytest.fixture(scope="session")
def make_lab(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeLab]:
    """Start labs; all are stopped at the end."""
    started: list[SlurmLab] = []

    def make(settings: LabSettings) -> SlurmLab:
        lab = SlurmLab(tmp_path_factory.mktemp("slurm"), settings, programs)
        started.append(lab)
        lab.start()
        return lab

    yield make
    for lab in started:
        lab.stop()


@pytest.fixture(scope="session")
def lab(make_lab: MakeLab) -> SlurmLab:
    """The Slurm that most tests share."""
    return make_lab(LabSettings(nodes=NODES))


class Hands:
    """A lab with daytwo's adapters, and what people, jobs and Slurm itself do on it. `node` is clean at first."""

    def __init__(self, lab: SlurmLab, node: str) -> None:
        self.lab = lab
        self.node = node
        self.scheduler = SlurmScheduler(lab.access, CLUSTER)
        self.hardware = SlurmHardware(lab.access, CLUSTER)

    async def start_job(self, node: str, *, opted: bool) -> str:
        job_id = self.submit(node, *(["--comment=please daytwo-requeue"] if opted else []))
        await self.until(lambda: self.job_state(job_id) == "RUNNING")
        return job_id

    def submit(self, node: str, *options: str) -> str:
        """Submit a long job that holds two of the node's GPUs, and return its id at once."""
        common = ("--parsable", "-D", "/", "-o", "/dev/null", "-w", node, "--gres=gpu:2", "--requeue")
        return self.lab.run("sbatch", *common, *options, "--wrap", "sleep 600").strip()

    def job_state(self, job_id: str) -> str:
        return self.lab.run("squeue", "-h", "-a", "-t", "all", "-j", job_id, "-o", "%T").strip()

    async def person_drains(self, node: str, reason: str) -> None:
        self.update(node, "drain", reason)

    async def person_reserves(self, node: str, name: str) -> None:
        self.reserve(node, name)

    def reserve(self, node: str, name: str, *, flags: str = "maint,ignore_jobs", start: str = "now") -> None:
        """Make a reservation of an hour, as a person would."""
        when = (f"StartTime={start}", "Duration=60", "Users=root", f"Flags={flags}")
        self.lab.run("scontrol", "create", "reservation", f"ReservationName={name}", f"Nodes={node}", *when)

    async def lift_drain_by_person(self, node: str) -> None:
        self.update(node, "undrain")

    def update(self, node: str, state: str, reason: str = "") -> None:
        """Type `scontrol update` as a person would."""
        self.lab.run(
            "scontrol", "update", f"nodename={node}", f"state={state}", *([f"reason={reason}"] if reason else [])
        )

    async def scheduler_drains(self, node: str) -> str:
        self.lab.set_hook("prolog", f'[ "$SLURMD_NODENAME" = {node} ] && exit 1', "exit 0")
        self.submit(node)
        await self.until(lambda: "drain" in self.lab.run("sinfo", "-h", "-n", node, "-o", "%T"))
        return "Prolog error"

    async def until(self, true: Callable[[], bool], seconds: float = 20) -> None:
        """Wait for something that Slurm is about to do."""
        async with asyncio.timeout(seconds):
            while not true():
                await asyncio.sleep(0.03)

    def give_back(self) -> None:
        """Take everything off the node, and let Slurm put it into service again in its own time."""
        self.lab.set_hook("prolog", "exit 0")
        self.lab.run("scancel", "--user=root", "--signal=KILL")
        self.lab.run("scancel", "--user=root")
        for line in self.lab.run("scontrol", "-o", "show", "reservations").splitlines():
            if line.startswith("ReservationName="):
                self.lab.run("scontrol", "delete", line.split()[0])

        with contextlib.suppress(Failed):  # it may not be possible yet: whoever takes the node tries again
            self._in_service(self.lab.states()[self.node])

    async def take(self) -> None:
        """Wait until the node is clean and in service."""
        await self.until(lambda: self._in_service(self.lab.states()[self.node]))

    def _in_service(self, state: str) -> bool:
        if state.startswith(("DRAIN", "DOWN")):
            self.update(self.node, "resume" if state.startswith("DOWN") else "undrain")
        return state == "IDLE"


TURN = itertools.cycle(NODES)


@pytest.fixture
async def hands(lab: SlurmLab) -> AsyncIterator[Hands]:
    """The shared lab and one of its nodes, clean. Tests take turns, so that Slurm has time to bring a node back."""
    hands = Hands(lab, next(TURN))
    await hands.take()
    yield hands
    hands.give_back()


@pytest.fixture
def scheduler_world(hands: Hands) -> Hands:
    """What the contract of schedulers runs on."""
    return hands
