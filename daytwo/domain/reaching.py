"""Which action is proposed for the case that leads, and which rung that is. Pure; `advising` asks.

A relapse, a repair that has climbed, and the same part again and again begin higher; what nobody can do here is passed
by; when the boots are used up a person must look.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from daytwo.domain.cases import Case, entry_of
from daytwo.domain.circumstances import Circumstances
from daytwo.domain.incidents import repeats, told
from daytwo.domain.ladders import REBOOT_CLASS, next_rung, rung_of
from daytwo.domain.situation import PastRepair
from daytwo.domain.tests_first import why_tests_first
from daytwo.domain.vocabulary import Action, FaultClass, State

DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)


def reached(here: Circumstances, lead: Case) -> tuple[Action, int, tuple[str, ...]]:
    """The action, the rung reached, and the rules that moved it off the first action."""
    at_least, because = _at_least(here, lead)
    tests = why_tests_first(here.situation, lead, here.policy.timing)
    if tests and at_least <= rung_of(Action.VERIFY) <= rung_of(lead.rule.action):
        return Action.VERIFY, rung_of(Action.VERIFY), (*lead.notes, *because, tests)
    action = lead.rule.action
    if not _is_able(here, action):
        because = (*because, f"no driver can {action.value}")
    if rung_of(action) < at_least or not _is_able(here, action):
        climbed = next_rung(ladder_here(here, lead), max(at_least, rung_of(action)) - 1)
        action = climbed or Action.INSPECT
        because = (*because, f"next: {climbed.value}" if climbed else "the ladder has ended: a person must look")
    if action in REBOOT_CLASS and (spent := _spent(here)):
        # Boots are used up. A spare helps after one that did not; short of that a person must look.
        spare = at_least > 0 and Action.FAILOVER in ladder_here(here, lead)
        action, because = Action.FAILOVER if spare else Action.INSPECT, (*because, spent)
    return action, max(at_least, rung_of(action)), (*lead.notes, *because)


def ladder_here(here: Circumstances, lead: Case) -> tuple[Action, ...]:
    """The rungs that somebody can climb here."""
    return tuple(action for action in lead.rule.ladder if _is_able(here, action))


def _is_able(here: Circumstances, action: Action) -> bool:
    return here.situation.able is None or action in here.situation.able


def _at_least(here: Circumstances, lead: Case) -> tuple[int, tuple[str, ...]]:
    floors = [(0, "")]
    repair = here.situation.open_repair
    if repair is not None and repair.disturbed:
        floors.append((repair.rung, repair.failed or "this repair has climbed"))
    since = here.now - timedelta(seconds=here.policy.attempts.relapse_seconds)
    floors += [
        (_rung_tried(past) + 1, f"relapse after {past.repair_id}")
        for past in here.situation.history
        if past.closed_at >= since and _was_tried(past) and past.was_about(lead.fault.id)
    ]
    floors += _too_often(here, lead)
    rung, rule = max(floors)
    return rung, (rule,) if rule else ()


def _too_often(here: Circumstances, lead: Case) -> list[tuple[int, str]]:
    """The rung of removal, where the same part was repaired so often that another repair is no use."""
    if Action.REMOVE not in ladder_here(here, lead):
        return []

    def class_of(fault: str) -> FaultClass:
        return entry_of(here.catalogue, fault).fault_class

    entity, fault_class, rule = lead.finding.entity, lead.fault.fault_class, here.policy.attempts
    past = repeats(here.situation.history, entity, fault_class, class_of=class_of, rule=rule, now=here.now)
    return [(rung_of(Action.REMOVE), told(past, entity, fault_class, rule))] if past else []


def _spent(here: Circumstances) -> str:
    """Why no further boot is proposed, or nothing."""
    limits = here.policy.attempts
    for span, most, words in ((DAY, limits.per_day, "24 h"), (WEEK, limits.per_week, "7 days")):
        boots = [p for p in here.situation.history if _booted(p) and p.closed_at > here.now - span]
        if len(boots) >= most:
            return f"{len(boots)} of {most} boots in {words} are used: a person must look"
    return ""


def _was_tried(past: PastRepair) -> bool:
    """A repair that came to something. A dismissal tried nothing, nor did a fault that went away."""
    return past.outcome is State.SUCCEEDED or (past.acted and past.outcome in (State.HANDED_OVER, State.REMOVED))


def _rung_tried(past: PastRepair) -> int:
    if past.action is None or past.action.touches_nothing:
        return past.rung
    return rung_of(past.action)


def _booted(past: PastRepair) -> bool:
    return past.acted and past.action in REBOOT_CLASS
