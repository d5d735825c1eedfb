"""Others' work on a node: what it is, whose it is, and what waits for it. Pure; operations.md, rules 9, 16 and 20.

Triage asks before it proposes, a repair before it goes on, and the watch for silent agents before it calls one silent.
"""

from __future__ import annotations

from typing import Final

from daytwo.domain.seams import NodeFacts, Ownership

OURS: Final = frozenset({Ownership.OURS, Ownership.HALF_DONE})

POWER_SAVING: Final = {
    "POWER_DOWN": "its scheduler is about to switch it off, to save power",
    "POWERING_DOWN": "its scheduler is switching it off, to save power",
    "POWERED_DOWN": "its scheduler has switched it off, to save power",
    "POWER_UP": "its scheduler is about to switch it on",
    "POWERING_UP": "its scheduler is switching it on, or boots it for other features",
}
"""By state of Slurm. Such a node is not broken; nobody is heard on it, and nothing is done to it."""

PLANNED: Final = {
    "MAINTENANCE": "it is reserved for maintenance",
    "MAINT": "it is reserved for maintenance",
    "REBOOT_REQUESTED": "somebody has asked for a reboot",
    "REBOOT_ISSUED": "somebody reboots it",
    "FUTURE": "it is not in service yet",
    **POWER_SAVING,
}
"""Words of Slurm for work that somebody planned, where the marks are not ours.

Not here: PLANNED, which is the backfill scheduler's plan for a job, CLOUD, DYNAMIC_NORM, RESERVED and BLOCKED, which
say how a node is used, and INVALID_REG, NOT_RESPONDING, DOWN, DRAIN and FAIL, which have meanings of their own.
"""


def others_work(facts: NodeFacts | None) -> str:
    """Say who works or plans to work on the node now, and how; empty if nobody does, or it cannot be known.

    A maintenance that somebody announced counts under our marks too; a reboot under them may be ours.
    """
    if facts is None or facts.planned:
        return facts.planned if facts else ""
    if facts.ownership in OURS:
        return ""
    if is_taken(facts):
        return taken_by(facts)
    words = [text for word, text in PLANNED.items() if word in facts.states]
    if not words and facts.rebooting:
        words = ["a reboot is under way"]
    reason = f": {facts.reason} [{facts.reason_by or 'unknown'}]" if facts.rebooting and facts.reason else ""
    return f"planned work is under way: {words[0]}{reason}" if words else ""


def before_our_act(facts: NodeFacts) -> str:
    """Say what a repair that carries its marks, and has not begun to act, must wait for. Then no reboot is ours."""
    if facts.planned or facts.ownership not in OURS:
        return others_work(facts)
    if facts.rebooting:
        return f"somebody has asked for a reboot ({'+'.join(facts.states)}): {facts.reason} [{facts.reason_by}]"
    return next((text for word, text in POWER_SAVING.items() if word in facts.states), "")


def is_taken(facts: NodeFacts) -> bool:
    """True for a node that a person, or another tool, has taken out of service."""
    return facts.drained_by == "person" or (facts.ownership is Ownership.FOREIGN and facts.drained_by != "scheduler")


def taken_by(facts: NodeFacts) -> str:
    """Say who has taken the node, in the words that they left."""
    return f"{facts.reason_by or 'somebody'} has taken the node: {facts.reason or 'no reason given'}"


def remembering(before: NodeFacts | None, now: NodeFacts) -> NodeFacts:
    """Return what a scheduler says now, where a reason that it kept from before would name the wrong one.

    Slurm 24.11 writes its own reason over a person's without another time, when the node comes back with a GPU too few:
    the drain is still that person's. And it keeps the reason of a drain that was lifted, also when the node falls by
    itself later: that is nobody's doing.
    """
    if before is None or now.reason_at is None or before.reason_at != now.reason_at:
        return now
    if before.drained_by == "person" and now.drained_by == "scheduler":
        return now.model_copy(update={"drained_by": "person", "ownership": Ownership.FOREIGN})
    # Whoever drains a node, or sets it down, gives its reason a new time.
    fell = before.drained_by == "nobody" and now.drained_by == "person"
    if (fell or before.drained_by == "scheduler") and before.reason == now.reason:
        ours = Ownership.HALF_DONE if now.mark_repair_id else Ownership.FREE
        return now.model_copy(update={"drained_by": "scheduler", "ownership": ours})
    return now


def is_switched_off(facts: NodeFacts) -> bool:
    """True while its scheduler has it off, or is switching it off or on: nobody can be heard there."""
    return any(word in POWER_SAVING for word in facts.states)
