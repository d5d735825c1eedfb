"""Why nobody is asked about a node now, although something fires that asks. Pure; triage asks before it proposes.

A person holds the node or has answered already, work is planned on it, a driver settles, or the cause is not its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from daytwo.domain.cases import Case, ids_of
from daytwo.domain.circumstances import Circumstances
from daytwo.domain.common_cause import shared_trouble
from daytwo.domain.containing import contains
from daytwo.domain.others_hands import others_work
from daytwo.domain.repair_states import LEAVES_MARKS
from daytwo.domain.situation import DomainTrouble, PastRepair, Situation
from daytwo.domain.tests_first import (
    driver_change,
    has_booted_after,
    is_held,
    says_change,
    settles_at,
    why_tests_first,
)
from daytwo.domain.verdicts import Withhold
from daytwo.domain.vocabulary import State
from daytwo.faults.signals import OFF_BUS_SIGNS, SAME_READING

Answer = tuple[Literal["snoozed", "noted"], datetime, str]
"""What somebody has answered, until when it holds, and with which repair."""


def withheld(here: Circumstances, ripe: Sequence[Case]) -> Withhold | None:
    """The reason not to ask about any of these cases now, if there is one."""
    if here.situation.held and here.situation.open_repair is None:
        rules = ("a person holds the node",)
        return Withhold(cause="held", why=here.situation.held, rules=rules, faults=ids_of(ripe))
    if retired := given_away(here.situation):
        rules = ("a removed node waits for its replacement",)
        return Withhold(cause="retired", why=retired, rules=rules, faults=ids_of(ripe))
    if planned := others_work(here.situation.facts):
        rules = ("planned work is judged when it ends",)
        return Withhold(cause="planned", why=planned, rules=rules, faults=ids_of(ripe))
    if settling := _settling(here, ripe):
        return settling
    awake = _awake(here, ripe)
    if not awake:
        return _answered(here, ripe)
    return None if remaining(here, ripe) else _one_cause(here, awake)


def remaining(here: Circumstances, ripe: Iterable[Case]) -> list[Case]:
    """The cases that are this node's own: not answered already, and not part of a common cause."""
    return [case for case in _awake(here, ripe) if _trouble(here, case) is None]


def given_away(situation: Situation) -> str:
    """A node that was removed or handed over keeps the marks of that repair until another takes them over."""
    mark = situation.facts.mark_repair_id if situation.facts else None
    left = [past for past in situation.history if past.outcome in LEAVES_MARKS]
    if mark is None or mark not in {past.repair_id for past in left}:
        return ""
    last = left[0]  # the newest says what the node is now; the marks may be those of one before it
    back = f"daytwo nodes repair {situation.cluster}/{situation.node} --action verify"
    return f"{last.outcome} with {last.repair_id}; the marks of {mark} still stand; to test and return it: {back}"


def _settling(here: Circumstances, ripe: Sequence[Case]) -> Withhold | None:
    """Everything waits where all of it may come from a driver that somebody has just changed."""
    timing, change = here.policy.timing, driver_change(here.situation)
    if change is None or not all(is_held(case, change, timing, here.now) for case in ripe):
        return None
    contain, rules = contains(here, ripe)
    return Withhold(
        cause="planned",
        why=says_change(change),
        rules=("a new driver is judged when it has settled", *rules),
        look_again_at=settles_at(change, timing),
        contain=contain,
        faults=ids_of(ripe),
    )


def _awake(here: Circumstances, ripe: Iterable[Case]) -> list[Case]:
    return [case for case in ripe if _answer(here, case) is None]


def _answer(here: Circumstances, case: Case) -> Answer | None:
    """What somebody has answered about this fault that still holds."""
    for past in here.situation.history:
        if not _is_about(past, case) or _is_outdated(here, past, case):
            continue
        if past.snooze_until is not None and past.snooze_until > here.now:
            return "snoozed", past.snooze_until, f"dismissed with {past.repair_id}"
        until = past.closed_at + timedelta(seconds=here.policy.timing.noted_seconds)
        if _was_noted(past) and until > here.now:
            return "noted", until, f"somebody was told by {past.repair_id}"
    return None


def _is_outdated(here: Circumstances, past: PastRepair, case: Case) -> bool:
    """An answer from before a boot by another hand: the question is another one now."""
    tests = why_tests_first(here.situation, case, here.policy.timing)
    return bool(tests) and has_booted_after(here.situation, past.closed_at)


def _is_about(past: PastRepair, case: Case) -> bool:
    """The same fault, or a late sign of it on an entity of that repair."""
    late = case.finding.entity in past.entities and any(case.finding.fault in group for group in _same_signs(past))
    return late or past.was_about(case.fault.id) or past.was_about(case.finding.fault)


def _same_signs(past: PastRepair) -> list[tuple[str, ...]]:
    """Signs that come after the fault they are of: the driver's word, and NVML's, that a GPU off the bus is gone."""
    off_bus = any(past.was_about(fault) for fault in OFF_BUS_SIGNS)
    return [SAME_READING, OFF_BUS_SIGNS] if off_bus else [SAME_READING]


def _was_noted(past: PastRepair) -> bool:
    return past.outcome is State.SUCCEEDED and past.action is not None and past.action.touches_nothing


def _answered(here: Circumstances, ripe: Sequence[Case]) -> Withhold:
    answers = [answer for case in ripe if (answer := _answer(here, case)) is not None]
    cause, until, why = min(answers, key=lambda answer: answer[1])
    # A dismissal lifts containment; one that only took note does not.
    contain, rules = contains(here, ripe) if cause == "noted" else (False, ())
    return Withhold(
        cause=cause, why=why, rules=(why, *rules), look_again_at=until, contain=contain, faults=ids_of(ripe)
    )


def _one_cause(here: Circumstances, cases: Sequence[Case]) -> Withhold:
    trouble = next(trouble for case in cases if (trouble := _trouble(here, case)) is not None)
    contain, rules = contains(here, cases)
    why = f"{trouble.nodes} nodes of {trouble.domain} have {trouble.fault_class} faults: one cause, not many nodes"
    return Withhold(
        cause="common-cause",
        why=why,
        rules=("breaker", *rules),
        contain=contain,
        domain=trouble.domain,
        faults=ids_of(cases),
    )


def _trouble(here: Circumstances, case: Case) -> DomainTrouble | None:
    since, fault_class = case.finding.first_seen, case.fault.fault_class
    return shared_trouble(here.situation, here.policy, fault_class, since=since, now=here.now)
