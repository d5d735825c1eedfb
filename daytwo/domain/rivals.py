"""Who else acts on a node while a repair of ours is open on it, and when that is a rival healer. Pure.

Intake compares two answers of the scheduler; what it finds is kept as observations, and counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from daytwo.domain.boots import moved
from daytwo.domain.policy import Rivals
from daytwo.domain.seams import NodeFacts, Ownership
from daytwo.domain.vocabulary import Lasting

FOREIGN_ACT: Final = "foreign-act"
MARKS_LOST: Final = "marks-lost"
RIVAL: Final = "rival-healer"
BOOTED: Final = "booted it"


class ForeignAct(Lasting):
    """One act of somebody else. `by` is empty where the scheduler does not say who it was."""

    what: str
    by: str = ""
    reason: str = ""
    at: datetime

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.by or 'somebody'} {self.what}{reason}"


def is_whole(facts: NodeFacts, repair_id: str) -> bool:
    """True while the node carries both marks of this repair."""
    return facts.ownership is Ownership.OURS and facts.mark_repair_id == repair_id


def has_lost_marks(before: NodeFacts, after: NodeFacts, repair_id: str) -> bool:
    """True if the marks of this repair were whole, and are not any more; Slurm may write its own reason over ours."""
    return is_whole(before, repair_id) and not is_whole(after, repair_id) and after.drained_by != "scheduler"


def acts_between(before: NodeFacts, after: NodeFacts, repair_id: str) -> tuple[ForeignAct, ...]:
    """Return what was done to the node between two answers, unless it was done by us: the caller knows that."""
    found = (_of_marks(before, after, repair_id), _of_boots(before, after))
    return tuple(act for act in found if act is not None)


def _of_marks(before: NodeFacts, after: NodeFacts, repair_id: str) -> ForeignAct | None:
    lost = has_lost_marks(before, after, repair_id)
    if after.drained_by == "person" and (lost or before.drained_by == "nobody"):
        what = "drained it over our marks" if lost else "drained it"
        return ForeignAct(what=what, by=after.reason_by, reason=after.reason, at=after.at)
    if lost and after.drained_by == "ours" and after.mark_repair_id not in (repair_id, None):
        return ForeignAct(what="wrote over our marks", by="another daytwo", reason=after.reason, at=after.at)
    if lost and not _lost_its_drain_by_booting(before, after):
        return ForeignAct(what="took our marks off", at=after.at)
    if before.drained_by == "person" and after.drained_by == "nobody":
        return ForeignAct(what="resumed it", reason=before.reason, at=after.at)
    return None


def _lost_its_drain_by_booting(before: NodeFacts, after: NodeFacts) -> bool:
    """A reboot through Slurm lifts the drain and leaves the reservation, whoever asked for it."""
    boots = before.rebooting or after.rebooting or _of_boots(before, after) is not None
    return boots and after.ownership is Ownership.HALF_DONE and after.drained_by == "nobody"


def _of_boots(before: NodeFacts, after: NodeFacts) -> ForeignAct | None:
    if after.boot_time is None or not moved(before.boot_time, after.boot_time):
        return None
    return ForeignAct(what=BOOTED, reason=before.reason if before.rebooting else "", at=after.boot_time)


def rival(acts: Sequence[ForeignAct], limits: Rivals, now: datetime) -> str:
    """Say who acts on the node again and again; empty if nobody does."""
    recent = [act for act in acts if act.at > now - timedelta(seconds=limits.window_seconds)]
    if len(recent) < limits.acts:
        return ""
    shown = "; ".join(f"{act.at:%Y-%m-%d %H:%M:%SZ} {act}" for act in recent[-limits.acts :])
    return f"another hand acts on this node too, {len(recent)} times in {limits.window_seconds / 3600:g} h: {shown}"
