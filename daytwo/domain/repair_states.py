"""The state machine of a repair, as a table: (state, event) -> state. The workflow turns it; docs and tests use it.

`python -m daytwo.domain.repair_states` prints the diagram that stands in docs/repair-states.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from daytwo.domain.vocabulary import DecisionKind, State

S = State


class Event(StrEnum):
    """What can happen to a repair. Every accepted event is a row of its timeline."""

    REVISED = "revised"
    APPROVED = "approved"
    DISMISSED = "dismissed"
    CLEARED = "cleared"
    HELD = "held"
    RELEASED = "released"
    AUTHORISED = "authorised"
    NOT_AUTHORISED = "not-authorised"
    NOTED = "noted"
    EXPIRED = "expired"
    QUARANTINED = "quarantined"
    MOMENT_CAME = "moment-came"
    STAKES_GREW = "stakes-grew"
    NOTHING_TO_DO = "nothing-to-do"
    BOOTED_BY_ANOTHER = "booted-by-another"
    DRAINED = "drained"
    ACTED = "acted"
    RETIRED = "retired"
    VERIFIED = "verified"
    STILL_FAULTY = "still-faulty"
    REJOINED = "rejoined"
    STUCK = "stuck"
    RETRIED = "retried"
    TEST_ASKED = "test-asked"
    REMOVAL_DECIDED = "removal-decided"
    HANDED_OVER = "handed-over"


E = Event

TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (S.PROPOSED, E.REVISED): S.PROPOSED,
    (S.PROPOSED, E.APPROVED): S.APPROVED,
    (S.PROPOSED, E.DISMISSED): S.DISMISSED,
    (S.PROPOSED, E.CLEARED): S.AUTO_RESOLVED,
    (S.PROPOSED, E.HELD): S.HELD,
    (S.PROPOSED, E.STUCK): S.NEEDS_HELP,
    (S.APPROVED, E.AUTHORISED): S.QUARANTINING,
    (S.APPROVED, E.NOT_AUTHORISED): S.PROPOSED,
    (S.APPROVED, E.EXPIRED): S.PROPOSED,
    (S.APPROVED, E.NOTED): S.SUCCEEDED,
    (S.APPROVED, E.DISMISSED): S.DISMISSED,
    (S.APPROVED, E.HELD): S.HELD,
    (S.APPROVED, E.STUCK): S.NEEDS_HELP,
    (S.QUARANTINING, E.QUARANTINED): S.WAITING,
    (S.QUARANTINING, E.DISMISSED): S.DISMISSED,
    (S.QUARANTINING, E.HELD): S.HELD,
    (S.QUARANTINING, E.STUCK): S.NEEDS_HELP,
    (S.WAITING, E.MOMENT_CAME): S.DRAINING,
    (S.WAITING, E.NOTHING_TO_DO): S.VERIFYING,
    (S.WAITING, E.BOOTED_BY_ANOTHER): S.VERIFYING,
    (S.WAITING, E.STAKES_GREW): S.PROPOSED,
    (S.WAITING, E.CLEARED): S.AUTO_RESOLVED,
    (S.WAITING, E.EXPIRED): S.PROPOSED,
    (S.WAITING, E.DISMISSED): S.DISMISSED,
    (S.WAITING, E.HELD): S.HELD,
    (S.WAITING, E.STUCK): S.NEEDS_HELP,
    (S.DRAINING, E.DRAINED): S.ACTING,
    (S.DRAINING, E.BOOTED_BY_ANOTHER): S.VERIFYING,
    (S.DRAINING, E.DISMISSED): S.DISMISSED,
    (S.DRAINING, E.HELD): S.HELD,
    (S.DRAINING, E.STUCK): S.NEEDS_HELP,
    (S.ACTING, E.ACTED): S.VERIFYING,
    (S.ACTING, E.BOOTED_BY_ANOTHER): S.VERIFYING,
    (S.ACTING, E.RETIRED): S.REMOVED,
    (S.ACTING, E.STUCK): S.NEEDS_HELP,
    (S.VERIFYING, E.VERIFIED): S.REJOINING,
    (S.VERIFYING, E.STILL_FAULTY): S.PROPOSED,
    (S.VERIFYING, E.STUCK): S.NEEDS_HELP,
    (S.REJOINING, E.REJOINED): S.SUCCEEDED,
    (S.REJOINING, E.STILL_FAULTY): S.PROPOSED,
    (S.REJOINING, E.STUCK): S.NEEDS_HELP,
    (S.NEEDS_HELP, E.RETRIED): S.APPROVED,
    (S.NEEDS_HELP, E.TEST_ASKED): S.VERIFYING,
    (S.NEEDS_HELP, E.REMOVAL_DECIDED): S.REMOVED,
    (S.NEEDS_HELP, E.HANDED_OVER): S.HANDED_OVER,
}

EVENT_OF: Final[dict[DecisionKind, Event]] = {
    DecisionKind.APPROVE: E.APPROVED,
    DecisionKind.DISMISS: E.DISMISSED,
    DecisionKind.HOLD: E.HELD,
    DecisionKind.RELEASE: E.RELEASED,
    DecisionKind.RETRY: E.RETRIED,
    DecisionKind.RETURN_AFTER_TESTS: E.TEST_ASKED,
    DecisionKind.REMOVE: E.REMOVAL_DECIDED,
    DecisionKind.HAND_OVER: E.HANDED_OVER,
}
"""The event that a decision becomes when accepted; a state that does not know the event does not take the decision."""

END_OF: Final[dict[State, Event]] = {
    S.SUCCEEDED: E.REJOINED,
    S.REMOVED: E.RETIRED,
    S.DISMISSED: E.DISMISSED,
    S.AUTO_RESOLVED: E.CLEARED,
    S.HANDED_OVER: E.HANDED_OVER,
}
"""The event that stands for an end of which only the state is known."""

HELD_FROM: Final = frozenset(s for (s, e) in TRANSITIONS if e is E.HELD)
TERMINAL: Final = frozenset({S.SUCCEEDED, S.REMOVED, S.DISMISSED, S.AUTO_RESOLVED, S.HANDED_OVER})
LEAVES_MARKS: Final = frozenset({S.REMOVED, S.HANDED_OVER})
"""How a repair may end with its marks still on the node: somebody else stands behind them then."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How long a state may last, and whether it waits for a person (then `limit` is `None`)."""

    waits_for_person: bool
    limit: timedelta | None
    says: str


RULES: Final[dict[State, Rule]] = {
    S.PROPOSED: Rule(True, None, "A revision of the proposal stands and waits for an answer."),
    S.APPROVED: Rule(False, timedelta(hours=24), "Approved; the rules are checked as they are now."),
    S.QUARANTINING: Rule(False, timedelta(minutes=5), "Marks are written so that no new work lands."),
    S.WAITING: Rule(
        False,
        timedelta(hours=24),
        "Waiting for the approved moment; the fault and the jobs are looked at again.",
    ),
    S.DRAINING: Rule(False, timedelta(minutes=30), "Work is taken off the node; never by force."),
    S.ACTING: Rule(False, timedelta(minutes=40), "The act is carried out and proven."),
    S.VERIFYING: Rule(False, timedelta(minutes=30), "The node is tested for the fault that it had."),
    S.REJOINING: Rule(False, timedelta(minutes=10), "Our marks are lifted in reverse and the node is seen good."),
    S.NEEDS_HELP: Rule(True, None, "Still quarantined; a person decides."),
    S.HELD: Rule(True, None, "Held by a person; nothing moves."),
}


def after(state: State, event: Event, *, held_from: State | None = None) -> State | None:
    """Return where `event` leads from `state`, or `None` if it is not accepted there.

    A release leads back to where the repair was held (`held_from`), but never past the look that `waiting` takes.
    """
    if state is S.HELD:
        back = S.WAITING if held_from is S.DRAINING else held_from
        return {E.RELEASED: back, E.DISMISSED: S.DISMISSED, E.STUCK: S.NEEDS_HELP}.get(event)
    return TRANSITIONS.get((state, event))


def is_terminal(state: State) -> bool:
    """True for a state from which nothing leads on."""
    return state in TERMINAL


def mermaid() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {S.PROPOSED.value}"]
    lines += [f"    {_name(a)} --> {_name(b)}: {e.value}" for (a, e), b in TRANSITIONS.items()]
    released = {after(S.HELD, E.RELEASED, held_from=s) for s in HELD_FROM}
    lines += [f"    {S.HELD.value} --> {_name(s)}: {E.RELEASED.value}" for s in sorted(filter(None, released))]
    lines += [f"    {S.HELD.value} --> {S.DISMISSED.value}: {E.DISMISSED.value}"]
    lines += [f"    {S.HELD.value} --> {_name(S.NEEDS_HELP)}: {E.STUCK.value}"]
    lines += [f"    {_name(s)} --> [*]" for s in sorted(TERMINAL)]
    return "\n".join(lines)


def _name(state: State) -> str:
    return state.value.replace("-", "_")


if __name__ == "__main__":
    print(mermaid())
