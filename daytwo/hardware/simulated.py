"""The machines of a simulated fleet (`daytwo.lab`): a reboot by its scheduler, a power cycle by its BMCs.

`daytwo.adapters` builds one for a cluster of kind `simulated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from daytwo.domain.errors import Refused, UnknownAnswer
from daytwo.domain.seams import Act, ActKind, AlreadyDone, Look, NodeFacts, NotOurs, Outcome, Preparation
from daytwo.hardware.slurm import why_not
from daytwo.lab import remote
from daytwo.schedulers.simulated import SETTLE_SECONDS, SimulatedScheduler, order

CAPABILITIES: Final = frozenset({ActKind.REBOOT, ActKind.POWER_CYCLE})


class SimulatedHardware:
    """`Hardware` on a lab. Proof: the scheduler's boot time, for a power cycle the BMC's count of resets."""

    settle_seconds: float = SETTLE_SECONDS

    def __init__(self, socket: str, cluster: str) -> None:
        self._socket = socket
        self._scheduler = SimulatedScheduler(socket, cluster)

    def capabilities(self) -> frozenset[ActKind]:
        """A reboot and a power cycle."""
        return CAPABILITIES

    async def baseline(self, act: Act) -> Act:
        """Add the boot time, or for a power cycle the BMC's count of resets and whose BMC it is."""
        if act.kind is ActKind.POWER_CYCLE:
            machine = await self._machine(act.node)
            known = {"resets": machine["resets"], "bmc_serial": machine["serial"]}
        else:
            known = {"boot_time": await self._boot_time(act.node)}
        return act.model_copy(update={"baseline": {**act.baseline, **known}})

    async def prepare(self, act: Act) -> Preparation:
        """Look again whose the node is, and describe the write. Raises `NotYet` while another boot is under way."""
        facts = await self._scheduler.node(act.node)
        if act.kind is ActKind.REBOOT:
            if _booted_since(act, facts):
                return AlreadyDone(proof=f"{act.node} booted at {facts.boot_time}")
            return why_not(act, facts) or order(self._socket, act)
        if act.kind is ActKind.POWER_CYCLE:
            # A boot that hangs is what a power cycle is for.
            return why_not(act, facts.model_copy(update={"rebooting": False})) or await self._prepare_power(act)
        raise Refused(f"{act.kind}: the hardware of a simulated fleet cannot do it")

    async def look(self, act: Act) -> Look:
        """Say whether the boot happened: `done` once the node is back, `pending` while it boots."""
        if act.kind is ActKind.POWER_CYCLE:
            return _look_at_power(act, await self._machine(act.node))
        return _look_at_boot(act, await self._scheduler.node(act.node))

    async def _prepare_power(self, act: Act) -> Preparation:
        machine = await self._machine(act.node)
        if machine["serial"] != act.baseline["bmc_serial"]:
            return NotOurs(found=f"the BMC of {act.node} belongs to machine {machine['serial']}")
        if machine["power"] == "off":
            return NotOurs(found=f"{act.node} is switched off, not by daytwo")
        if machine["resets"] > act.baseline["resets"]:
            return AlreadyDone(proof=f"the BMC counts {machine['resets']} resets")
        return order(self._socket, act)

    async def _boot_time(self, node: str) -> str:
        facts = await self._scheduler.node(node)
        if facts.boot_time is None:
            raise UnknownAnswer(f"{node}: the scheduler does not know when it booted ({'+'.join(facts.states)})")
        return facts.boot_time.isoformat()

    async def _machine(self, node: str) -> Mapping[str, Any]:
        found = await remote.rows(self._socket, f"/machines/{node}", key="machines")
        if len(found) != 1 or not {"serial", "power", "resets", "os_running"} <= found[0].keys():
            raise UnknownAnswer(f"lab: the BMC of {node} answered {found!s:.200}")
        return found[0]


def _booted_since(act: Act, facts: NodeFacts) -> bool:
    # Without Slurm's tolerance of two seconds: the lab knows its boot times, and a fast fleet boots twice in two.
    return facts.boot_time is not None and facts.boot_time > datetime.fromisoformat(act.baseline["boot_time"])


def _look_at_boot(act: Act, facts: NodeFacts) -> Look:
    proof = f"{'+'.join(facts.states)}, booted at {facts.boot_time.isoformat() if facts.boot_time else 'no known time'}"
    if _booted_since(act, facts):
        return Look(outcome=Outcome.DONE, proof=proof, proof_type="slurm-boot-time")
    # Up, answering, with the old boot time and no order to boot: the order never came.
    pending = facts.rebooting or not facts.responding
    return Look(outcome=Outcome.PENDING if pending else Outcome.NOT_DONE, proof=proof, proof_type="scheduler-state")


def _look_at_power(act: Act, machine: Mapping[str, Any]) -> Look:
    proof = f"resets {machine['resets']}, power {machine['power']}, system {'up' if machine['os_running'] else 'down'}"
    if machine["resets"] <= act.baseline["resets"]:
        outcome = Outcome.NOT_DONE
    else:
        outcome = Outcome.DONE if machine["os_running"] else Outcome.PENDING
    return Look(outcome=outcome, proof=proof, proof_type="bmc")
