"""What the driver asks for a GPU: NVML's recovery action, which Xid 154 prints when it changes.

Triage calls `asked` for a finding of `recovery-action` or `xid-154`. The number decides, never the words: driver 610
has other words for the same numbers (NVIDIA/open-gpu-kernel-modules `ctrl2080gpu.h`, #1353).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from daytwo.faults.model import Action, Fault


@dataclass(frozen=True, slots=True)
class Recovery:
    """One value of the recovery action: what it asks, the act that answers it, and whether new work would fail."""

    number: int
    name: str
    action: Action | None
    new_work_fails: bool


NOTHING: Final = 0

RECOVERIES: Final = {
    recovery.number: recovery
    for recovery in (
        Recovery(NOTHING, "nothing", None, False),
        Recovery(1, "reset the GPU", Action.RESET_GPU, True),
        Recovery(2, "reboot the node", Action.REBOOT, True),
        # Only the peers of this GPU are to stop; no act of ours does that.
        Recovery(3, "drain the GPU's P2P peers", Action.INSPECT, False),
        Recovery(4, "drain, then reset the GPU", Action.RESET_GPU, True),
        # A restart of IMEX ends the work of the whole NVLink domain: a person decides when that is empty.
        Recovery(5, "recover the IMEX domain", Action.INSPECT, False),
    )
}


def recovery(number: int | None) -> Recovery:
    """Return what a recovery action asks; a number that is new, or could not be read, asks a person."""
    if number in RECOVERIES:
        return RECOVERIES[number]
    return Recovery(-1 if number is None else number, "something that is not known", Action.INSPECT, False)


def asked(fault: Fault, number: int | None) -> Fault:
    """Return the catalogue's entry with what the driver asks by `number` as its first action and need to contain.

    The driver's word goes before the catalogue's, except for a GPU off the bus (Xid 79): there it asks for a reset
    of a GPU that it can no longer reach, and the catalogue's reboot stands.
    """
    asks = recovery(number)
    return replace(fault, first_action=asks.action, new_work_fails=asks.new_work_fails)
