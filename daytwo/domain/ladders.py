"""Ladders: what is tried first for a class of fault, and what comes after it when that did not help.

A rung is how much an action takes away, on one scale for all ladders, so that rungs of two faults can be compared and a
repair that has climbed never steps down when another fault leads it. Policy and triage use this.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from daytwo.domain.vocabulary import Action, FaultClass

A = Action

RUNGS: Final[dict[Action, int]] = {
    A.TELL_OWNER: 0,
    A.INSPECT: 0,
    A.RUN_DIAGNOSTIC: 1,
    A.VERIFY: 1,
    A.RESTART_SERVICE: 2,
    A.RESET_GPU: 3,
    A.REBOOT: 4,
    A.POWER_CYCLE: 5,
    A.REPROVISION: 6,
    A.FAILOVER: 7,
    A.REMOVE: 8,
}

# operations.md 3. A disk is never wiped for a fault of a board: that cures none of 48, 64, 74, 79 (rule 3).
# A power cycle follows a reboot: a GPU off the bus, or a GSP that hangs, may need its power taken (faults.md 15).
LADDERS: Final[dict[FaultClass, tuple[Action, ...]]] = {
    FaultClass.BOARD: (A.RESET_GPU, A.REBOOT, A.POWER_CYCLE, A.FAILOVER, A.REMOVE),
    FaultClass.SOFTWARE: (A.RESTART_SERVICE, A.REBOOT, A.REPROVISION, A.REMOVE),
    FaultClass.FILESYSTEM: (A.RESTART_SERVICE, A.REBOOT, A.REPROVISION, A.REMOVE),
    FaultClass.LINK: (A.INSPECT, A.FAILOVER),
    FaultClass.FACILITY: (A.INSPECT,),
    FaultClass.APPLICATION: (A.TELL_OWNER, A.RUN_DIAGNOSTIC),
    FaultClass.SCHEDULER: (A.VERIFY, A.REBOOT),
    FaultClass.AGENT: (A.INSPECT,),
}

REBOOT_CLASS: Final = frozenset({A.REBOOT, A.POWER_CYCLE})
"""The acts that `Policy.attempts` counts."""


def rung_of(action: Action) -> int:
    """How much `action` takes away: 0 touches nothing, 8 removes the node."""
    return RUNGS[action]


def ladder_from(ladder: tuple[Action, ...], first: Action) -> tuple[Action, ...]:
    """Return `ladder` as it is climbed from `first`.

    A first action that only asks a person, on a ladder that does not know it, stays alone: nobody may conclude a
    reset from "look at the cable".
    """
    if first.touches_nothing and first not in ladder:
        return (first,)
    return (first, *(action for action in ladder if rung_of(action) > rung_of(first)))


def next_rung(ladder: tuple[Action, ...], rung: int) -> Action | None:
    """Return the first action of `ladder` above `rung`; `None` where it ends, and a person must look."""
    return next((action for action in ladder if rung_of(action) > rung), None)


def climbs(ladder: tuple[Action, ...]) -> bool:
    """True for a ladder that is not empty and takes away more with each rung."""
    rungs = [rung_of(action) for action in ladder]
    return bool(rungs) and all(low < high for low, high in pairwise(rungs))
