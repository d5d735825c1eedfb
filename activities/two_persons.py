"""Counts who stands behind an action that needs two persons. Rows only: a first approval ends as `counted`.

`authorise` asks whether an approval is the second one, `assess` what a proposal with one approval waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeGuard

from sqlmodel import Session, col, select

from daytwo.domain.policy import Person, Policy
from daytwo.domain.vocabulary import Action, Channel, DecisionKind, DecisionStatus
from daytwo.service.rights import Allowed, find_person, may
from daytwo.store.tables import DecisionRow, RepairRow

SECOND: Final = "needs a second person"


class Backing(NamedTuple):
    """What else an approval needs. Nothing is set where one person is enough.

    `refused`: it cannot count. `missing`: it is the first, and counts until it expires. `beside`: who approved before.
    """

    refused: str = ""
    missing: str = ""
    beside: tuple[str, ...] = ()


def action_of(row: DecisionRow, proposed: Action | None) -> Action | None:
    """What a decision would have done to the node; `proposed` is what the revision asks for."""
    if row.kind == DecisionKind.REMOVE:
        return Action.REMOVE
    if row.kind == DecisionKind.RETURN_AFTER_TESTS:
        return Action.VERIFY
    return Action(row.action) if row.action else proposed


def backing(session: Session, row: DecisionRow, policy: Policy, proposed: Action | None, *, now: datetime) -> Backing:
    """Say whether `row` has the second person that its action needs, by the policy as it is now."""
    action = action_of(row, proposed)
    if action is None or action not in policy.approval.two_person:
        return Backing()
    who = find_person(policy, row.actor)
    if row.channel == Channel.POLICY or not row.verified or not _is_somebody(who, policy):
        return Backing(refused=f"{action} needs two persons, and {row.actor} is nobody whose identity is proven")
    if who.name == _asker(session, row.repair_id, policy):
        return Backing(refused=f"{who.name} asked for this repair: {action} needs two others to approve it")
    before = _names(_counted(session, row, policy, now), policy, action, proposed)
    if who.name in before:
        return Backing(refused=f"{who.name} has approved already: {action} needs a second person")
    if not before:
        return Backing(missing=f"{action} needs a second person besides {who.name}")
    return Backing(beside=before)


def waits_for(session: Session, repair_id: str, revision: int, policy: Policy, *, now: datetime) -> str:
    """What a revision with one approval waits for, in one sentence; empty where none counts."""
    valid = timedelta(seconds=policy.approval.valid_seconds)
    rows = _rows(session, repair_id, revision, now - valid)
    if not rows:
        return ""
    last = rows[-1]
    return f"{SECOND}: {last.actor} has approved, which holds until {last.at + valid:%Y-%m-%d %H:%MZ}"


def _counted(session: Session, row: DecisionRow, policy: Policy, now: datetime) -> Sequence[DecisionRow]:
    return _rows(session, row.repair_id, row.revision, now - timedelta(seconds=policy.approval.valid_seconds))


def _rows(session: Session, repair_id: str, revision: int, since: datetime) -> Sequence[DecisionRow]:
    mine = (
        DecisionRow.repair_id == repair_id,
        DecisionRow.revision == revision,
        DecisionRow.status == DecisionStatus.COUNTED,
        col(DecisionRow.at) > since,
    )
    return session.exec(select(DecisionRow).where(*mine).order_by(col(DecisionRow.at))).all()


def _names(rows: Sequence[DecisionRow], policy: Policy, action: Action, proposed: Action | None) -> tuple[str, ...]:
    """The persons behind these rows who may still approve this very action."""
    same = [row for row in rows if action_of(row, proposed) is action]
    theirs = [row for row in same if _is_somebody(find_person(policy, row.actor), policy)]
    found = [may(policy, row.actor, action, verified=row.verified) for row in theirs]
    return tuple(dict.fromkeys(each.who for each in found if isinstance(each, Allowed)))


def _is_somebody(who: Person | None, policy: Policy) -> TypeGuard[Person]:
    """False for root as such: whoever has approved as himself can be root as well."""
    return who is not None and who in policy.approval.people


def _asker(session: Session, repair_id: str, policy: Policy) -> str | None:
    repair = session.get(RepairRow, repair_id)
    person = find_person(policy, repair.opened_by) if repair else None
    return person.name if person else None
