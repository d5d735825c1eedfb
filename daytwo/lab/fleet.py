"""The simulated fleet: nodes, their scheduler, their BMCs and their jobs, in one object with an injected clock.

`daytwo.lab.server` serves it over a socket; tests use it directly. It proves nothing about real servers: the contract
tests do. What a scheduler and a BMC let one do to it is in `daytwo.lab.acts`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from daytwo.domain.errors import BadInput, NotFound
from daytwo.lab.faults import DRAINS, RECOVERY_WORDS, SCRIPTS, ActiveFault, Break, Drain, xid
from daytwo.lab.jobs import KINDS, LARGE, LARGE_WIDTH, JobQueue
from daytwo.lab.timeline import Timeline
from daytwo.lab.world import SCHEDULER_USER, Gpu, Job, Node, Reservation, make_node, new_boot_id

BootKind = Literal["reboot", "power-cycle"]

RECOVERY_DELAY: Final = 0.4
"""Xid 154 follows its cause at +404 ms in the longest log that we have."""


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things take, in simulated seconds. The defaults are those of HGX servers and a stock Slurm."""

    boot: float = 480.0
    slurmd_timeout: float = 300.0
    resume_timeout: float = 1800.0
    epilog: float = 10.0
    cycle: float = 30.0
    """The scheduler looks for work to place this often."""
    requeue_delay: float = 120.0
    watchdog: float = 1800.0
    """How long the ranks of a hung job wait for the dead one."""
    relapse_after_boot: float = 30.0
    """When a fault that a boot did not cure shows again."""
    job_memory: float = 300.0
    arrivals: float = 900.0
    """Mean time between two new jobs."""


class Fleet:
    """The world. Call `advance` before every look; it happens only then. Not safe for threads."""

    def __init__(
        self,
        names: Iterable[str],
        *,
        wall: Callable[[], datetime],
        gpus: int = 8,
        seed: int = 1,
        timings: Timings = Timings(),
    ) -> None:
        self.wall = wall
        self.timings = timings
        self.timeline = Timeline()
        self.reservations: dict[str, Reservation] = {}
        self.controller_started = wall()
        self._rng = random.Random(seed)  # noqa: S311 - a simulation that is the same each time
        self.nodes = {name: make_node(name, gpus=gpus, rng=self._rng, now=wall()) for name in names}
        self.queue = JobQueue(
            self.timeline,
            self.nodes,
            self._rng,
            is_open=self.is_open,
            epilog=timings.epilog,
            requeue_delay=timings.requeue_delay,
        )
        self._fill()
        self.timeline.every(timings.cycle, self._cycle)

    def advance(self, to: float) -> None:
        """Let everything happen up to simulated second `to`."""
        self.timeline.advance(to)

    def node(self, name: str) -> Node:
        """Return a node. Raises `NotFound`."""
        if name not in self.nodes:
            raise NotFound(f"node: found {name!r}; allowed is one of {len(self.nodes)}, from {min(self.nodes)}")
        return self.nodes[name]

    def reservations_of(self, node: Node) -> list[Reservation]:
        """Return the reservations that hold a node."""
        return [held for held in self.reservations.values() if held.node == node.name]

    def is_open(self, node: Node) -> bool:
        """True if new work may land on a node."""
        closed = node.drain or node.down or node.reboot_requested or node.reboot_issued or self.reservations_of(node)
        return node.up and not closed

    def restart_controller(self) -> None:
        """The scheduler starts without its saved state: it knows of no drain and no reservation any more."""
        self.controller_started = self.wall()
        self.reservations.clear()
        for node in self.nodes.values():
            node.drain = None

    # ------------------------------------------------------------------ faults

    def break_node(self, name: str, how: Break) -> None:
        """Inject a fault. Raises `NotFound` for the node and `BadInput` for a fault or GPU that is not there."""
        node = self.node(name)
        if how.fault not in SCRIPTS:
            raise BadInput(f"fault: found {how.fault!r}; allowed is {', '.join(SCRIPTS)}")
        script = SCRIPTS[how.fault]
        index = None if script.node_wide else self._gpu_index(node, how)
        fault = ActiveFault(script, how, index)
        node.faults.append(fault)
        self._strike(node, fault)
        self._hit_jobs(node, fault)

    def heal_node(self, name: str) -> None:
        """End every fault of a node, drains of ours excepted; logs and jobs stay as they are. A stuck boot goes on."""
        node = self.node(name)
        if node.drain in [fault.drain for fault in node.faults]:
            node.drain = None
        node.faults.clear()
        node.agent_silent = False
        for gpu in node.gpus:
            gpu.reset()
        node.gpus_registered = len(node.gpus)
        if not node.up:
            self.boot(node, "reboot")

    def _gpu_index(self, node: Node, how: Break) -> int:
        index = min(3, len(node.gpus) - 1) if how.gpu is None else how.gpu
        if not 0 <= index < len(node.gpus):
            raise BadInput(f"gpu: found {index}; allowed is 0 to {len(node.gpus) - 1}")
        return index

    def _strike(self, node: Node, fault: ActiveFault) -> None:
        if fault.how.fault in DRAINS:
            reason, by = DRAINS[fault.how.fault]
            node.drain = fault.drain = Drain(fault.how.reason or reason, fault.how.by or by, self.wall())
        if fault.how.fault == "agent-silent":
            node.agent_silent = True
        if fault.gpu is not None:
            self._strike_gpu(node, node.gpus[fault.gpu], fault)

    def _strike_gpu(self, node: Node, gpu: Gpu, fault: ActiveFault) -> None:
        script = fault.script
        gpu.lost = gpu.lost or script.lost
        gpu.remap_pending = gpu.remap_pending or script.remap_pending
        gpu.remap_failed = gpu.remap_failed or script.remap_failed
        gpu.hw_slowdown = gpu.hw_slowdown or script.hw_slowdown
        for line in script.lines:
            self._print(node, line, gpu, level=script.level)
        if script.recovery:
            self.timeline.after(RECOVERY_DELAY, lambda: self._ask_recovery(node, gpu, script.recovery))

    def _ask_recovery(self, node: Node, gpu: Gpu, wanted: int) -> None:
        if not node.up or gpu.recovery_action == wanted:
            return
        before = f"0x{gpu.recovery_action:x} ({RECOVERY_WORDS[gpu.recovery_action]})"
        text = f"GPU recovery action changed from {before} to 0x{wanted:x} ({RECOVERY_WORDS[wanted]})"
        gpu.recovery_action = wanted
        self._print(node, xid(154, text), gpu, level=4)

    def _print(self, node: Node, text: str, gpu: Gpu, *, level: int) -> None:
        job = self.queue.on_gpu(node.name)
        pid, name = (str(20_000 + int(job.id) % 9_000), "python3") if job else ("'<unknown>'", "<unknown>")
        filled = text.format(pci=gpu.pci, pid=pid, name=name, gpu=gpu.index)
        for line in filled.split("\n"):
            node.log(line, at=self.wall(), level=level)

    def _hit_jobs(self, node: Node, fault: ActiveFault) -> None:
        for job in self.queue.on(node.name):
            if job.state == "RUNNING":
                self._hit(job, fault)

    def _hit(self, job: Job, fault: ActiveFault) -> None:
        if fault.how.job_dies or fault.script.on_jobs == "die":
            self.queue.end(job, "FAILED")
        elif fault.script.on_jobs == "hang":
            self.queue.hang(job, self.timings.watchdog)

    # ------------------------------------------------------------------ boots

    def boot(self, node: Node, kind: BootKind) -> None:
        """Take a node down and let it come up again, if its faults let it."""
        node.power = "booting"
        node.boots += 1
        boot = node.boots
        self.timeline.after(self.timings.slurmd_timeout, lambda: self._missed(node, boot))
        self.timeline.after(self.timings.resume_timeout, lambda: self._timed_out(node, boot))
        self.timeline.after(self.timings.boot * self._rng.uniform(0.9, 1.15), lambda: self._come_up(node, boot, kind))

    def switch_off(self, node: Node) -> None:
        """Take the power from a node until somebody gives it back."""
        node.power = "off"
        node.boots += 1
        boot = node.boots
        self.timeline.after(self.timings.slurmd_timeout, lambda: self._missed(node, boot))

    def _missed(self, node: Node, boot: int) -> None:
        """SlurmdTimeout: the scheduler gives the node up, and its jobs with it."""
        if node.boots == boot and not node.up:
            node.down = True
            node.down_reason = node.down_reason or "Not responding"
            self.queue.lose(node.name)

    def _timed_out(self, node: Node, boot: int) -> None:
        if node.boots == boot and not node.up and node.reboot_issued:
            node.down, node.down_reason = True, "reboot timed out"
            node.reboot_issued = False

    def _come_up(self, node: Node, boot: int, kind: BootKind) -> None:
        if node.boots != boot or any(fault.how.never_comes_back for fault in node.faults):
            return
        node.power, node.boot_time = "on", self.wall()
        node.boot_id = new_boot_id(node.name, boot, node.boot_time)
        node.kernel = []
        self._print_boot(node)
        for gpu in node.gpus:
            gpu.reset()
        self._settle_faults(node, kind)
        self._register(node)

    def _print_boot(self, node: Node) -> None:
        node.log("Linux version 6.8.0-60-generic (buildd@lcy02) (gcc 13.3.0) #63-Ubuntu SMP", at=self.wall(), level=5)
        node.log("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.148.08", at=self.wall(), level=5)

    def _settle_faults(self, node: Node, kind: BootKind) -> None:
        for fault in list(node.faults):
            if fault.how.comes_back_without_gpu and fault.gpu is not None:
                node.gpus[fault.gpu].absent = True
            elif fault.script.node_wide:
                continue
            elif fault.survives(kind):
                self._relapse(node, fault, self.timings.relapse_after_boot)
            else:
                node.faults.remove(fault)
                self._schedule_return(node, fault)

    def _schedule_return(self, node: Node, fault: ActiveFault) -> None:
        if fault.how.returns_after is not None:
            again = fault.how.model_copy(update={"returns_after": None})
            self.timeline.after(fault.how.returns_after, lambda: self.break_node(node.name, again))

    def _relapse(self, node: Node, fault: ActiveFault, delay: float) -> None:
        boot = node.boots

        def again() -> None:
            if node.boots == boot and node.up and fault in node.faults:
                self._strike(node, fault)

        self.timeline.after(delay, again)

    def _register(self, node: Node) -> None:
        """The node daemon registers: ReturnToService=2, and a reboot that the scheduler ordered loses the drain."""
        if node.reboot_issued or node.down_reason == "reboot timed out":
            node.drain = None
        node.reboot_issued = node.down = False
        node.down_reason = ""
        node.gpus_registered = sum(not gpu.absent for gpu in node.gpus)
        self.queue.lose(node.name)
        if node.gpus_registered < len(node.gpus):
            reason = f"gres/gpu count reported lower than configured ({node.gpus_registered} < {len(node.gpus)})"
            node.drain = node.drain or Drain(reason, SCHEDULER_USER, self.wall())

    # ------------------------------------------------------------------ the scheduler's own work

    def _fill(self) -> None:
        """A fleet in full swing: one large job where it fits, small ones, and a few idle nodes to spare."""
        names = list(self.nodes)
        busy = names[: len(names) - self._spares()]
        if len(busy) >= LARGE_WIDTH:
            large = self.queue.submit(LARGE, width=LARGE_WIDTH)
            self.queue.start(large, tuple(busy[:LARGE_WIDTH]), elapsed=self._rng.uniform(2, 20) * 3600)
            busy = busy[LARGE_WIDTH:]
        for position, name in enumerate(busy):
            job = self.queue.submit(KINDS[position % len(KINDS)])
            self.queue.start(job, (name,), elapsed=self._rng.uniform(0, 0.5) * job.length)

    def _cycle(self) -> None:
        for node in self.nodes.values():
            self._reboot_when_idle(node)
        self.queue.forget(self.timings.job_memory)
        self.queue.place()
        idle = sum(not self.queue.on(name) for name in self.queue.free())
        if idle > self._spares() and self._rng.random() < self.timings.cycle / self.timings.arrivals:
            self.queue.submit(self._rng.choice(KINDS))

    def _reboot_when_idle(self, node: Node) -> None:
        if node.reboot_requested and node.up and not self.queue.on(node.name):
            node.reboot_requested, node.reboot_issued = False, True
            self.boot(node, "reboot")

    def _spares(self) -> int:
        return max(1, len(self.nodes) // 8) if len(self.nodes) > 1 else 0
