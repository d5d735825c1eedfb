"""Machines for the demo on a real Slurm: slurmd, agent, GPUs and kernel log, which boot and lose power together."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import Final

from daytwo.agent.journal import DiskJournal
from daytwo.agent.spool import Spool
from daytwo.lab.demo.children import Background
from daytwo.lab.fake_nvml.harness import FakeNvml
from daytwo.lab.slurm_config import LabSettings
from daytwo.lab.slurm_lab import SlurmLab

KMSG: Final = Path("/dev/kmsg")
GPU_POLL_SECONDS: Final = 2.0
BANNER: Final = "Linux version 6.1.0 (demo)"
KERNEL_ERROR: Final = 3


class Machine:
    """One node. `kernel_log` is /dev/kmsg for one of them at most, because they all run under one kernel."""

    def __init__(self, name: str, folder: Path, *, gpus: int, library: Path, kernel_log: Path | None) -> None:
        folder.mkdir(parents=True)
        self.name = name
        self._folder = folder
        self._library = library
        self._gpus = FakeNvml(folder / "gpus", gpus)
        self._count = gpus
        self._log = kernel_log or folder / "kernel.log"
        self._lines = 0
        self._agent: Background | None = None
        self._gateway, self._agent_log = "", folder / "agent.log"
        self._new_boot()

    def enrol(self, gateway: str, token: str, *, agent_log: Path) -> None:
        """Give the node its one credential, and say where it reports and where its agent's own log goes."""
        self._gateway, self._agent_log = gateway, agent_log
        (self._folder / "token").write_text(token)
        (self._folder / "token").chmod(0o600)

    def start_agent(self) -> None:
        """Start `daytwo-agent` as its unit would."""
        log = "kmsg" if self._log == KMSG else f"file:{self._log}"
        options = {"node": self.name, "gateway": self._gateway, "token-file": self._folder / "token", "kernel-log": log}
        options |= {"state-dir": self._folder / "agent", "expect-gpus": self._count}
        options |= {"gpu-poll-seconds": GPU_POLL_SECONDS}
        words = [word for name, value in options.items() for word in (f"--{name}", f"{value}")]
        command = [sys.executable, "-m", "daytwo.agent.main", *words, "--accept-user-records"]
        self._agent = Background(f"agent of {self.name}", command, log=self._agent_log, env=self._environment())

    def cut_power(self) -> None:
        """Everything on it ends at once."""
        if self._agent is not None:
            self._agent.kill()
            self._agent = None

    def boot(self) -> None:
        """Another boot id, all GPUs back, and the agent again."""
        for index in range(self._count):
            self._gpus.find(index)
        self._new_boot()
        self.start_agent()

    def lose_gpu(self, index: int) -> str:
        """Let a GPU fall off the bus. Returns the driver's line, as it stands in the kernel log."""
        self._gpus.lose(index)
        address = bytes(self._gpus.gpu(index).bus_id).decode().lower()[4:].split(".")[0]
        text = f"NVRM: Xid (PCI:{address}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
        self._print(text)
        return f"{text}   (in {self._log})"

    def _new_boot(self) -> None:
        boot_id = str(uuid.uuid4())
        (self._folder / "boot_id").write_text(f"{boot_id}\n")
        if self._log == KMSG:
            self._forget_older_records(boot_id)
        else:
            self._print(BANNER)

    def _forget_older_records(self, boot_id: str) -> None:
        # A boot empties the kernel log. This machine has not booted, so its agent is told to go on from here.
        journal = DiskJournal(self._folder / "agent")
        spool = Spool(journal)
        spool.remember("position", {"boot_id": boot_id, "position": [_last_record()]})
        spool.commit()
        journal.close()

    def _print(self, text: str) -> None:
        self._lines += 1
        if self._log == KMSG:
            # The kernel lets one open descriptor write a few lines in five seconds: each line gets its own.
            KMSG.write_text(f"<{KERNEL_ERROR}>{text}\n")
            return
        with self._log.open("a") as log:
            log.write(f"{KERNEL_ERROR},{self._lines},{self._lines * 1000},-;{text}\n")

    def _environment(self) -> dict[str, str]:
        boot = {"DAYTWO_TEST_BOOT_ID_FILE": str(self._folder / "boot_id")}
        return {**os.environ, **self._gpus.environment(self._library), **boot}


class MachineRoom(SlurmLab):
    """A Slurm whose nodes are machines: a reboot of the node is a reboot of its agent and its GPUs too."""

    def __init__(self, root: Path, settings: LabSettings) -> None:
        super().__init__(root, settings)
        self.machines: dict[str, Machine] = {}

    def add(self, machine: Machine) -> None:
        """Put a machine in its place and start its agent."""
        self.machines[machine.name] = machine
        machine.start_agent()

    def power_on(self, node: str, *, booted: bool = True) -> None:
        """Start the slurmd, and what else is on the machine."""
        super().power_on(node, booted=booted)
        if booted and node in self.machines:
            self.machines[node].boot()

    def cut_power(self, node: str) -> None:
        """End the slurmd, and what else is on the machine."""
        if node in self.machines:
            self.machines[node].cut_power()
        super().cut_power(node)


def kernel_log_for_patient() -> Path | None:
    """/dev/kmsg, if this process may write and read it; `None` means that a file must do."""
    return KMSG if os.access(KMSG, os.R_OK | os.W_OK) and _last_record() is not None else None


def _last_record() -> int | None:
    """The kernel's number of the newest record, or `None` if the log cannot be read."""
    newest = None
    try:
        device = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        while True:
            try:
                newest = int(os.read(device, 16 * 1024).split(b",", 2)[1])
            except BrokenPipeError:
                continue  # overwritten while we read: go on with the oldest that is left
    except (BlockingIOError, PermissionError):
        return newest
    finally:
        os.close(device)
