"""Incidents of one part over weeks: what must be repaired again and again is to be removed. Pure; triage asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from daytwo.domain.policy import Attempts
from daytwo.domain.situation import PastRepair
from daytwo.domain.vocabulary import FaultClass, State
from daytwo.wire import node_entity

NODE: Final = node_entity()


def repeats(
    history: Iterable[PastRepair],
    entity: str,
    fault_class: FaultClass,
    *,
    class_of: Callable[[str], FaultClass],
    rule: Attempts,
    now: datetime,
) -> tuple[PastRepair, ...]:
    """Return the repairs, oldest first, that make the present incident one too many; none if it is not.

    They are of the same class of fault on the same part: a GPU by its UUID, so that one that was swapped begins anew.
    What concerned the whole node concerned each of its parts. Who was only told, or dismissed it, has repaired nothing.
    """
    since = now - timedelta(seconds=rule.incidents_seconds)
    past = [
        each
        for each in history
        if each.closed_at > since
        and was_repaired(each)
        and _concerned(each, entity)
        and _is_of(each, fault_class, class_of)
    ]
    return tuple(sorted(past, key=lambda each: each.closed_at)) if len(past) + 1 >= rule.incidents else ()


def told(past: tuple[PastRepair, ...], entity: str, fault_class: FaultClass, rule: Attempts) -> str:
    """Say it in words, with the dates."""
    dates = ", ".join(f"{each.closed_at:%d %b} ({each.repair_id})" for each in past)
    days = rule.incidents_seconds / 86400
    return f"incident {len(past) + 1} of class {fault_class} on {entity} in {days:g} days, repaired before on {dates}"


def was_repaired(past: PastRepair) -> bool:
    """True for a repair that did something to the node, or tested it, and came to its end."""
    did = past.action is not None and not past.action.touches_nothing
    return did and past.acted and past.outcome in (State.SUCCEEDED, State.HANDED_OVER, State.REMOVED)


def _concerned(past: PastRepair, entity: str) -> bool:
    return entity in past.entities or NODE in past.entities or (entity == NODE and bool(past.entities))


def _is_of(past: PastRepair, fault_class: FaultClass, class_of: Callable[[str], FaultClass]) -> bool:
    return past.fault is not None and class_of(past.fault) is fault_class
