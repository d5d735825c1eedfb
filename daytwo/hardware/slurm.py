"""Reboots a node through Slurm (`scontrol reboot`, RebootProgram) and proves it by Slurm's BootTime.

The plain form, on a node that is drained already, keeps drain and reason across the boot under every ReturnToService
(`nextstate=resume` and `ASAP` lift the drain; after `nextstate=down` the node is back in service within seconds under
ReturnToService=2). No reason is given, so that the drain's own stays.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from daytwo.domain.boots import moved
from daytwo.domain.definition import SlurmAccess
from daytwo.domain.errors import NotYet, Refused, UnknownAnswer
from daytwo.domain.seams import Act, ActKind, AlreadyDone, Look, NodeFacts, NotOurs, Outcome, Preparation
from daytwo.schedulers.slurm import SlurmScheduler
from daytwo.schedulers.slurm_acts import quote, reason_is
from daytwo.schedulers.slurm_cli import SlurmCli

SETTLE_SECONDS: Final = 15.0
"""As for the scheduler: how long slurmctld may still be serving a request whose client died."""


class SlurmHardware:
    """`daytwo.domain.seams.Hardware` for `reboot`, on one Slurm with a RebootProgram."""

    settle_seconds: float = SETTLE_SECONDS

    def __init__(self, access: SlurmAccess, cluster: str) -> None:
        self._cli = SlurmCli(access, cluster)
        self._scheduler = SlurmScheduler(access, cluster)

    def capabilities(self) -> frozenset[ActKind]:
        """Reboot, nothing else."""
        return frozenset({ActKind.REBOOT})

    async def baseline(self, act: Act) -> Act:
        """Add the boot time before the act. Raises `UnknownAnswer` while Slurm does not know it."""
        facts = await self._scheduler.node(act.node)
        if facts.boot_time is None:
            raise UnknownAnswer(f"{act.node}: Slurm does not know when it booted ({'+'.join(facts.states)})")
        return act.model_copy(update={"baseline": {**act.baseline, "boot_time": facts.boot_time.isoformat()}})

    async def prepare(self, act: Act) -> Preparation:
        """Describe the reboot of a node that this repair drained. Raises `NotYet` while another one is pending."""
        if (await self._cli.config())["RebootProgram"] == "(null)":
            raise Refused(f"{act.node}: slurm.conf sets no RebootProgram, so Slurm cannot reboot it")
        facts = await self._scheduler.node(act.node)
        if booted_since(act, facts):
            return AlreadyDone(proof=f"booted at {facts.boot_time}")
        return why_not(act, facts) or self._cli.command("reboot", act.node)

    async def look(self, act: Act) -> Look:
        """Say whether the node booted since the act's baseline, from facts read now."""
        return judge(act, await self._scheduler.node(act.node))


def booted_since(act: Act, facts: NodeFacts) -> bool:
    """Say whether Slurm has seen a boot after the act's baseline."""
    return moved(datetime.fromisoformat(act.baseline["boot_time"]), facts.boot_time)


def why_not(act: Act, facts: NodeFacts) -> NotOurs | None:
    """Return what forbids a reboot of this node: another's mark, or running work."""
    if not reason_is(act, facts) or "DRAIN" not in facts.states:
        return NotOurs(found=f"{'+'.join(facts.states)}: {quote(facts)}, not drained by {act.mark.repair_id}")
    if facts.busy:
        return NotOurs(found=f"{act.node} still runs work ({'+'.join(facts.states)})")
    if facts.rebooting:
        raise NotYet(f"{act.node}: a reboot is already under way ({'+'.join(facts.states)})", 5.0)
    return None


def judge(act: Act, facts: NodeFacts) -> Look:
    """Decide from the boot time. An old one proves nothing while a reboot is pending or the node is silent."""
    if booted_since(act, facts) and facts.responding:
        return Look(outcome=Outcome.DONE, proof=f"booted at {facts.boot_time}", proof_type="slurm-boot-time")
    shown = f"{'+'.join(facts.states)}, booted at {facts.boot_time}, reason {facts.reason!r}"
    return Look(outcome=_undecided(facts), proof=shown, proof_type="scheduler-state")


def _undecided(facts: NodeFacts) -> Outcome:
    if facts.rebooting or not facts.responding:
        return Outcome.PENDING
    # Idle, answering and with its old boot time: the reboot was not taken. Down and answering: it cannot be told.
    return Outcome.UNCLEAR if facts.boot_time is None or "DOWN" in facts.states else Outcome.NOT_DONE
