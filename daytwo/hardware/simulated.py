"""The machines of a simulated fleet (`daytwo.lab`): a reboot by its scheduler, a power cycle by its BMCs.

`daytwo.adapters` builds one for a cluster of kind `simulated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from daytwo.domain.errors import Refused, UnknownAnswer
from daytwo.domain.seams import (
    Act,
    ActKind,
    AlreadyDone,
    Look,
    NodeFacts,
    NotOurs,
    Outcome,
    Ownership,
    Preparation,
)
from daytwo.lab import remote
from daytwo.schedulers.simulated import SETTLE_SECONDS, SimulatedScheduler, order

CAPABILITIES: Final = frozenset({ActKind.REBOOT, ActKind.POWER_CYCLE})


class SimulatedHardware:
    """`Hardware` on a lab. Proof: the scheduler's boot time, for a power cycle the BMC's count of resets."""

    settle_seconds = SETTLE_SECONDS

    def __init__(self, socket: str, cluster: str) -> None:
        self._socket = socket
        self._scheduler = SimulatedScheduler(socket, cluster)

    def capabilities(self) -> frozenset[ActKind]:
        """A reboot and a power cycle."""
        return CAPABILITIES

    async def baseline(self, act: Act) -> Act:
        """Add the boot time, and for a power cycle the BMC's count of resets and who the machine is."""
        known = dict(act.baseline)
        facts = await self._scheduler.node(act.node)
        known["boot_time"] = facts.boot_time.isoformat() if facts.boot_time else None
        if act.kind is ActKind.POWER_CYCLE:
            machine = await self._machine(act.node)
            known |= {"resets": machine["resets"], "bmc_serial": machine["serial"]}
        return act.model_copy(update={"baseline": known})

    async def prepare(self, act: Act) -> Preparation:
        """Look again whose the node is, and describe the write."""
        facts = await self._scheduler.node(act.node)
        if facts.ownership is Ownership.FOREIGN or facts.mark_repair_id not in (None, act.mark.repair_id):
            return NotOurs(found=facts.reason or ", ".join(facts.reservations))
        if act.kind is ActKind.REBOOT:
            return self._prepare_reboot(act, facts)
        if act.kind is ActKind.POWER_CYCLE:
            return await self._prepare_power_cycle(act)
        raise Refused(f"{act.kind}: the hardware of a simulated fleet cannot do it")

    async def look(self, act: Act) -> Look:
        """Say whether the boot happened: `done` once the node is back, `pending` while it boots."""
        facts = await self._scheduler.node(act.node)
        if act.kind is ActKind.POWER_CYCLE:
            return _look_at_power(act, await self._machine(act.node))
        return _look_at_boot(act, facts)

    def _prepare_reboot(self, act: Act, facts: NodeFacts) -> Preparation:
        if facts.rebooting:
            return AlreadyDone(proof=f"{act.node} is {'+'.join(facts.states)}")
        if _booted_since(act, facts):
            return AlreadyDone(proof=f"{act.node} booted at {facts.boot_time}")
        return order(self._socket, act, reason=act.mark.reason)

    async def _prepare_power_cycle(self, act: Act) -> Preparation:
        machine = await self._machine(act.node)
        if machine["serial"] != act.baseline.get("bmc_serial", machine["serial"]):
            return NotOurs(found=f"the BMC of {act.node} belongs to machine {machine['serial']}")
        if machine["power"] == "off":
            return NotOurs(found=f"{act.node} is switched off, not by daytwo")
        if machine["resets"] > act.baseline.get("resets", machine["resets"]):
            return AlreadyDone(proof=f"the BMC counts {machine['resets']} resets")
        return order(self._socket, act)

    async def _machine(self, node: str) -> Mapping[str, Any]:
        found = await remote.rows(self._socket, f"/machines/{node}", key="machines")
        if len(found) != 1 or not {"serial", "power", "resets", "os_running"} <= found[0].keys():
            raise UnknownAnswer(f"lab: the BMC of {node} answered {found!s:.200}")
        return found[0]


def _booted_since(act: Act, facts: NodeFacts) -> bool:
    before = act.baseline.get("boot_time")
    return bool(before) and facts.boot_time is not None and facts.boot_time > datetime.fromisoformat(str(before))


def _look_at_boot(act: Act, facts: NodeFacts) -> Look:
    proof = f"{'+'.join(facts.states)}, boot time {facts.boot_time.isoformat() if facts.boot_time else 'not known'}"
    if _booted_since(act, facts):
        outcome = Outcome.DONE
    elif facts.rebooting or not facts.responding:
        outcome = Outcome.PENDING
    else:
        # Up, answering, with the old boot time and no order to boot: the order never came.
        outcome = Outcome.NOT_DONE if act.baseline.get("boot_time") else Outcome.UNCLEAR
    return Look(outcome=outcome, proof=proof, proof_type="slurm-boot-time")


def _look_at_power(act: Act, machine: Mapping[str, Any]) -> Look:
    proof = f"resets {machine['resets']}, power {machine['power']}, system {'up' if machine['os_running'] else 'down'}"
    if "resets" not in act.baseline:
        outcome = Outcome.UNCLEAR
    elif machine["resets"] <= act.baseline["resets"]:
        outcome = Outcome.NOT_DONE
    else:
        outcome = Outcome.DONE if machine["os_running"] else Outcome.PENDING
    return Look(outcome=outcome, proof=proof, proof_type="bmc")
