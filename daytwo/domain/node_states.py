"""What a person sees first about a node: one table from repair, findings, scheduler and silence to a state.

The reconciler calls `node_state` after each look and writes a transition when the answer changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from daytwo.domain.others_hands import OURS, is_taken, others_work, taken_by
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Frozen, NodeState, State

OPENING: Final = "opening"
"""The state of a repair row before its workflow has claimed it."""

BEFORE_THE_BOOT: Final = frozenset(
    {OPENING, State.PROPOSED, State.APPROVED, State.QUARANTINING, State.WAITING, State.DRAINING}
)
FROM_THE_BOOT_ON: Final = frozenset({State.ACTING, State.VERIFYING, State.REJOINING})


class NodeLook(Frozen):
    """What is known of a node. `repair_state` is that of its open repair; `facts` is `None` where the scheduler could
    not be read; `silent_after_seconds` is the policy's limit; `given_away` says how somebody else got the node;
    `leaves` is true of a repair that removes it.

    `firing` are the faults that somebody is asked about (`triage.asking`): an Xid of an application, which is only
    recorded, leaves its node healthy. Those are `recorded`.
    """

    repair_state: str | None
    repair_id: str | None = None
    firing: tuple[str, ...]
    recorded: tuple[str, ...] = ()
    facts: NodeFacts | None
    last_heard_at: datetime | None
    silent_after_seconds: float
    now: datetime
    expects_agent: bool = True
    held: str = ""
    given_away: str = ""
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: the first whose condition holds decides. `when` says it in words, for the docs."""

    state: NodeState
    when: str
    holds: Callable[[NodeLook], bool]
    why: Callable[[NodeLook], str]


def node_state(look: NodeLook) -> tuple[NodeState, str]:
    """Return the node's state and a sentence that says why. Total: the last row always holds."""
    row = next(row for row in TABLE if row.holds(look))
    return row.state, row.why(look)


def _in(states: frozenset[str]) -> Callable[[NodeLook], bool]:
    return lambda look: look.repair_state in states


def _is(state: State) -> Callable[[NodeLook], bool]:
    return lambda look: look.repair_state == state


def _is_leaving(look: NodeLook) -> bool:
    return look.leaves and look.repair_state == State.ACTING


def _repair(look: NodeLook) -> str:
    return f"repair {look.repair_id or ''} is {look.repair_state}".replace("  ", " ")


def _persons_drain(look: NodeLook) -> bool:
    facts = look.facts
    return facts is not None and facts.ownership not in OURS and is_taken(facts)


def _says_drained(look: NodeLook) -> str:
    return taken_by(look.facts) if look.facts else ""


def _kept_for_work(look: NodeLook) -> bool:
    """For a maintenance, or switched off to save power; a reboot shows as one."""
    facts = look.facts
    return facts is not None and not facts.rebooting and bool(others_work(facts))


def _silent(look: NodeLook) -> bool:
    if not look.expects_agent:
        return False
    limit = timedelta(seconds=look.silent_after_seconds)
    return look.last_heard_at is None or look.now - look.last_heard_at > limit


def _says_silent(look: NodeLook) -> str:
    if look.last_heard_at is None:
        return "nothing was ever heard from its agent"
    return f"nothing heard from its agent since {look.last_heard_at:%Y-%m-%d %H:%M:%SZ}"


def _boots(look: NodeLook) -> bool:
    return look.facts is not None and look.facts.rebooting


def _not_responding(look: NodeLook) -> bool:
    return look.facts is not None and not look.facts.responding


def _drained_by_scheduler(look: NodeLook) -> bool:
    return look.facts is not None and look.facts.drained_by == "scheduler"


def _says_healthy(look: NodeLook) -> str:
    fires = f"{', '.join(look.recorded)} {_be(look.recorded)} only recorded" if look.recorded else "nothing fires"
    if look.facts is not None and look.facts.ownership in OURS:
        return f"heard of, {fires}; daytwo's marks come off"
    return f"heard of, {fires}, open for work"


def _be(named: tuple[str, ...]) -> str:
    return "is" if len(named) == 1 else "are"


def _says(text: str) -> Callable[[NodeLook], str]:
    return lambda look: text


N = NodeState

# The order is the meaning: what we do goes before what others do, what is known goes before silence.
TABLE: Final = (
    Row(N.PAUSED, "its repair is removing it", _is_leaving, _says("it is being removed")),
    Row(N.BOOTING, "its repair is acting, verifying or rejoining", _in(FROM_THE_BOOT_ON), _repair),
    Row(N.UNHEALTHY, "its repair needs help", _is(State.NEEDS_HELP), _repair),
    Row(N.PAUSED, "a person holds it", lambda look: bool(look.held), lambda look: look.held),
    Row(N.PAUSED, "its repair is held by a person", _is(State.HELD), _repair),
    Row(
        N.PAUSED,
        "it was removed or handed over, and the marks still stand",
        lambda look: bool(look.given_away),
        lambda look: look.given_away,
    ),
    Row(N.PAUSED, "a person has drained or taken it", _persons_drain, _says_drained),
    Row(
        N.PAUSED,
        "somebody keeps it for maintenance, or its scheduler has switched it off to save power",
        _kept_for_work,
        lambda look: others_work(look.facts),
    ),
    Row(N.PENDING, "its repair is proposed, approved or under way before the boot", _in(BEFORE_THE_BOOT), _repair),
    Row(N.BOOTING, "the scheduler says that it reboots", _boots, _says("the scheduler says that it reboots")),
    Row(
        N.UNHEALTHY,
        "something fires that asks somebody, and no repair is open",
        lambda look: bool(look.firing),
        lambda look: f"firing: {', '.join(look.firing)}",
    ),
    Row(
        N.UNHEALTHY,
        "the scheduler itself has drained it",
        _drained_by_scheduler,
        lambda look: f"drained by the scheduler: {look.facts.reason if look.facts else ''}",
    ),
    Row(
        N.UNKNOWN,
        "the scheduler could not be read",
        lambda look: look.facts is None,
        _says("the scheduler could not be read"),
    ),
    Row(N.UNKNOWN, "nothing was heard for longer than its limit", _silent, _says_silent),
    Row(N.UNKNOWN, "it does not answer its scheduler", _not_responding, _says("it does not answer its scheduler")),
    Row(N.HEALTHY, "none of these", lambda look: True, _says_healthy),
)
