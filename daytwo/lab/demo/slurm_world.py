"""The demo on a real Slurm: slurmctld, slurmd and agents are real; the GPUs are played, and the boots are short."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Final

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.errors import Failed, Refused
from daytwo.domain.policy import Attempts, Policy, Verify
from daytwo.domain.vocabulary import ClusterKind
from daytwo.lab.approval import lab_approval
from daytwo.lab.demo.machines import Machine, MachineRoom, kernel_log_for_patient
from daytwo.lab.demo.plane import Plane, until
from daytwo.lab.fake_nvml.harness import CompilerMissing, build
from daytwo.lab.jobs import OPT_IN
from daytwo.lab.slurm_config import LabSettings
from daytwo.lab.slurm_lab import missing

CLUSTER: Final = "slurm"
NODES: Final = ("node-01", "node-02", "node-03", "node-04")
PATIENT: Final = "node-02"
GPUS: Final = 8
QUIET_SECONDS: Final = 3.0
"""How long the kernel log must be quiet before the node returns. The default is ten minutes; a demo is short."""


class SlurmWorld:
    """Four nodes of a real Slurm, two jobs, and on each node a real agent with a GPU library that can be broken."""

    def __init__(self) -> None:
        reason = missing()
        if reason:
            raise Refused(reason)
        self.cluster = CLUSTER
        self.nodes = len(NODES)
        self.about = f"a real Slurm of {len(NODES)} nodes on this machine, {GPUS} simulated GPUs each"
        self.up_options: tuple[str, ...] = ()
        self._opened: tuple[MachineRoom, Path] | None = None

    def open(self, plane: Plane) -> None:
        """Start Slurm, two jobs and the agents, and declare the cluster."""
        # Short and readable by all: munge and slurmd put sockets below it, and jobs' users look into it.
        root = Path(tempfile.mkdtemp(prefix="daytwo-slurm-"))
        root.chmod(0o755)
        log_dir = Path(plane.where["log_dir"])
        self._opened = MachineRoom(root, LabSettings(nodes=NODES, gpus=GPUS)), log_dir
        self._room.start()
        self._submit("llm-70b", nodes=2)
        self._submit("finetune-8b", nodes=1)
        self._declare(plane)
        try:
            library = build(root / "nvml")
        except CompilerMissing as error:
            raise Refused(str(error)) from error
        for name in NODES:
            token = plane.cli("nodes", "token", f"{CLUSTER}/{name}").strip().splitlines()[-1]
            log = kernel_log_for_patient() if name == PATIENT else None
            machine = Machine(name, root / "machines" / name, gpus=GPUS, library=library, kernel_log=log)
            machine.enrol(plane.where["gateway_url"], token, agent_log=log_dir / f"agent-{name}.log")
            self._room.add(machine)

    def patient(self) -> str:
        """The node whose agent reads the machine's own kernel log, if that is possible."""
        return PATIENT

    def jobs(self) -> list[str]:
        """One line for each job, from squeue."""
        return self._room.run("squeue", "-h", "-o", "%i %j %u %T on %N").splitlines()

    def break_node(self, node: str) -> str:
        """A GPU falls off the bus: NVML loses it, and the driver's line goes into the kernel log."""
        return self._room.machines[node].lose_gpu(5)

    def glance(self, node: str) -> str:
        """The node's state and reason from sinfo, and the jobs from squeue."""
        state = " ".join(self._room.run("sinfo", "-h", "-N", "-n", node, "-o", "%T  %E").split())
        jobs = " ".join(f"[{row}]" for row in self._room.run("squeue", "-h", "-o", "%i %T %N").splitlines())
        return f"{state}  {jobs}".rstrip()

    def marks(self, node: str) -> list[str]:
        """Reservations that name the node, and its reason."""
        reservations = [row for row in self._room.run("scontrol", "-o", "show", "res").splitlines() if node in row]
        reason = self._room.run("sinfo", "-h", "-N", "-n", node, "-o", "%E").strip()
        return [*reservations, *([] if reason == "none" else [reason])]

    def close(self) -> None:
        """End agents and Slurm, and remove their files; Slurm's logs are kept beside the others."""
        if self._opened is None:
            return
        room, log_dir = self._opened
        room.stop()
        if (room.root / "log").exists():
            shutil.copytree(room.root / "log", log_dir / "slurm", dirs_exist_ok=True)
        shutil.rmtree(room.root, ignore_errors=True)

    @property
    def _room(self) -> MachineRoom:
        if self._opened is None:
            raise Failed("the Slurm is asked before it was opened")
        return self._opened[0]

    def _submit(self, name: str, *, nodes: int) -> None:
        named = ("--job-name", name, "--chdir", "/", "--output", "/dev/null")
        allowed = ("--requeue", "--comment", OPT_IN)
        size = ("--nodes", str(nodes), "--gpus-per-node", str(GPUS))
        self._room.run("sbatch", *named, *allowed, *size, "--wrap", "sleep 3600")

        def runs() -> bool:
            return f"{name} R" in self._room.run("squeue", "-h", "-o", "%j %t")

        until(runs, seconds=20, what=f"job {name} to run")

    def _declare(self, plane: Plane) -> None:
        file = self._room.root / "cluster.json"
        file.write_text(json.dumps(self._definition().model_dump(mode="json", exclude_defaults=True)))
        plane.cli("clusters", "apply", str(file))

    def _definition(self) -> ClusterDefinition:
        return ClusterDefinition(
            name=CLUSTER,
            kind=ClusterKind.SLURM,
            groups=(NodeGroup(nodes=NODES, pool="h100", gpus=GPUS, domains=("rack-1",)),),
            slurm=self._room.access,
            policy=Policy(
                approval=lab_approval(),
                attempts=Attempts(per_day=20, per_week=100, incidents=100),
                verify=Verify(quiet_seconds=QUIET_SECONDS),
            ),
        )
