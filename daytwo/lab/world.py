"""The things of the simulated fleet: GPUs, kernel logs, nodes, jobs, reservations.

Times of jobs are simulated seconds. Whatever the control plane compares with its own clock (boot times, the time of a
reason, kernel timestamps) is real time, because its waits are real.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from daytwo.lab.faults import ActiveFault, Drain

PCI_BUSES: Final = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)
"""Where the eight GPUs of an HGX H100 board sit."""

GPU_NAME: Final = "NVIDIA H100 80GB HBM3"
DRIVER: Final = "570.148.08"
PRODUCT: Final = "Simulated HGX H100"

SCHEDULER_USER: Final = "slurm"
"""Who sets a reason that the scheduler found by itself."""

ON_A_NODE: Final = ("RUNNING", "COMPLETING")


@dataclass(slots=True)
class Gpu:
    """One GPU. `lost`: the driver no longer reaches it; `absent`: this boot did not find it."""

    index: int
    uuid: str
    serial: str
    pci: str
    lost: bool = False
    absent: bool = False
    recovery_action: int = 0
    remap_pending: bool = False
    remap_failed: bool = False
    hw_slowdown: bool = False

    def reset(self) -> None:
        """Forget every reading that a boot forgets."""
        self.lost = self.absent = False
        self.recovery_action = 0
        self.remap_pending = self.remap_failed = self.hw_slowdown = False


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One record of a kernel log. `level` is the syslog level, `monotonic_us` microseconds since boot."""

    sequence: int
    monotonic_us: int
    level: int
    text: str

    @property
    def kmsg(self) -> bytes:
        """The record as /dev/kmsg gives it."""
        return f"{self.level},{self.sequence},{self.monotonic_us},-;{self.text}\n".encode()


@dataclass(frozen=True, slots=True)
class Reservation:
    """A maintenance reservation of one node (Slurm's `maint,ignore_jobs`). It survives a boot of the node."""

    name: str
    node: str


@dataclass(slots=True)
class Node:
    """One machine with what its scheduler, its BMC and its kernel know of it."""

    name: str
    gpus: list[Gpu]
    system_uuid: str
    serial: str
    boot_id: str
    boot_time: datetime
    gpus_registered: int
    power: Literal["on", "booting", "off"] = "on"
    boots: int = 0
    resets: int = 0
    """How often the BMC cut the power."""
    down: bool = False
    down_reason: str = ""
    drain: Drain | None = None
    reboot_requested: bool = False
    reboot_issued: bool = False
    agent_silent: bool = False
    faults: list[ActiveFault] = field(default_factory=list)
    kernel: list[KernelLine] = field(default_factory=list)

    @property
    def up(self) -> bool:
        """True while its operating system runs."""
        return self.power == "on"

    def log(self, text: str, *, at: datetime, level: int = 3) -> None:
        """Let the kernel print `text`; a node that is not up prints nothing."""
        if self.up:
            monotonic_us = max(0, int((at - self.boot_time).total_seconds() * 1_000_000))
            self.kernel.append(KernelLine(len(self.kernel) + 1, monotonic_us, level, text))


@dataclass(slots=True)
class Job:
    """One job. It holds `gpus_per_node` GPUs on each of `width` nodes; `length` and `time_limit` are simulated seconds.

    `hung`: a rank is dead and the others wait for it; the scheduler still says RUNNING. `then` is the state after
    COMPLETING.
    """

    id: str
    name: str
    user: str
    account: str
    width: int
    gpus_per_node: int
    length: float
    time_limit: float
    may_requeue: bool = False
    comment: str = ""
    state: str = "PENDING"
    nodes: tuple[str, ...] = ()
    started: float = 0.0
    eligible: float = 0.0
    restarts: int = 0
    hung: bool = False
    then: str = ""


def make_node(name: str, *, gpus: int, rng: random.Random, now: datetime) -> Node:
    """Return a healthy node that was booted between one and thirty days ago."""
    return Node(
        name=name,
        gpus=[_make_gpu(index, rng) for index in range(gpus)],
        system_uuid=new_uuid(rng),
        serial=f"SIM{rng.randrange(10**9):09d}",
        boot_id=new_boot_id(name, 0, now),
        boot_time=now - timedelta(seconds=rng.randrange(86_400, 30 * 86_400)),
        gpus_registered=gpus,
    )


def new_uuid(rng: random.Random) -> str:
    """Return a random UUID that is the same for the same seed."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def new_boot_id(node: str, boot: int, now: datetime) -> str:
    """Return the id of one boot. It is never the same again, although the same seed gives the same machines.

    The control plane keeps kernel records by boot id and sequence: a fleet that started again with its old boot ids
    would be taken to repeat what was already seen.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{node} {boot} {now.isoformat()}"))


def _make_gpu(index: int, rng: random.Random) -> Gpu:
    domain, slot = divmod(index, len(PCI_BUSES))
    return Gpu(
        index=index,
        uuid=f"GPU-{new_uuid(rng)}",
        serial=f"165{rng.randrange(10**10):010d}",
        pci=f"{domain:04x}:{PCI_BUSES[slot]:02x}:00",
    )
