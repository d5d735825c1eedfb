"""When a fault leads to tests and not to a repair: somebody else booted the node, or changed its driver. Pure.

Such a fault may be gone already, and nobody has looked: a boot by another hand must not return a node untested, nor
should it be booted a second time. Triage asks.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from daytwo.domain.boots import SAME_BOOT, is_later
from daytwo.domain.cases import Case
from daytwo.domain.policy import Timing
from daytwo.domain.situation import Situation
from daytwo.domain.vocabulary import Clears, FaultClass, Finding, FindingStatus

DRIVER_CHANGED: Final = "driver-changed"
BOOT_CLEARS: Final = frozenset({Clears.RESET, Clears.BOOT_AND_TESTS})
"""What a boot may have ended. A reading ends by itself, and no boot swaps a part."""
OF_DRIVER: Final = frozenset({FaultClass.BOARD, FaultClass.SOFTWARE})


def why_tests_first(situation: Situation, case: Case, timing: Timing) -> str:
    """Say why a case leads to tests only; empty if it leads to a repair. Our own boots are no reason."""
    repair = situation.open_repair
    if repair is not None and repair.disturbed:
        return ""
    change = driver_change(situation)
    if change is not None and _belongs_to(case, change, timing):
        return f"{says_change(change)}: what was seen around it is tested, not repaired"
    if case.rule.clears in BOOT_CLEARS and has_booted_since(situation, case.finding):
        return "somebody else has booted the node since: what a boot may clear is tested before it is believed"
    return ""


def has_booted_since(situation: Situation, finding: Finding) -> bool:
    """True if the node runs another boot than the one in which the finding was seen last."""
    if finding.boot_id and situation.boot_id:
        return finding.boot_id != situation.boot_id
    return has_booted_after(situation, finding.last_seen + SAME_BOOT)


def has_booted_after(situation: Situation, then: datetime) -> bool:
    """True if the scheduler saw the node boot after that."""
    booted = situation.facts.boot_time if situation.facts else None
    return is_later(booted, then, clock_skew_seconds=situation.clock_skew_seconds)


def driver_change(situation: Situation) -> Finding | None:
    """The change of the driver that nobody has tested yet."""
    firing = (f for f in situation.findings if f.fault == DRIVER_CHANGED and f.status is FindingStatus.FIRING)
    return max(firing, key=lambda finding: finding.last_seen, default=None)


def settles_at(change: Finding, timing: Timing) -> datetime:
    """Until when what is seen around a change of the driver is held."""
    return change.last_seen + timedelta(seconds=timing.driver_settle_seconds)


def is_held(case: Case, change: Finding, timing: Timing, now: datetime) -> bool:
    """True for a fault that waits until the new driver has settled: the change itself, and what it may have made."""
    return now < settles_at(change, timing) and _belongs_to(case, change, timing)


def says_change(change: Finding) -> str:
    """Say which driver was changed, and when."""
    before, after = change.detail.get("before", "?"), change.detail.get("after", "?")
    return f"the driver was changed from {before} to {after} at {change.last_seen:%Y-%m-%d %H:%M:%SZ}"


def _belongs_to(case: Case, change: Finding, timing: Timing) -> bool:
    if case.finding.fault == DRIVER_CHANGED:
        return True
    around = timedelta(seconds=timing.driver_settle_seconds)
    near = change.last_seen - around <= case.finding.first_seen <= change.last_seen + around
    return near and case.fault.fault_class in OF_DRIVER
