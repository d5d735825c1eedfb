"""What an approval waits for, as far as the store knows it: worked out when somebody reads it, so it is never old.

Called by the service's reads and by `announce`. What only a scheduler knows, such as others' work on the node, is on
the repair as `waiting_for`, by whoever asked the scheduler last.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError
from sqlmodel import Session, col, select

from daytwo import budgets, repairs
from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.exchange import RepairRef
from daytwo.domain.interruptions import HOUR, too_many
from daytwo.domain.message import Around, new_jobs
from daytwo.domain.others_hands import is_taken, others_work, taken_by
from daytwo.domain.policy import Policy
from daytwo.domain.proposal import Proposal, is_requeued
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Action, DecisionKind, DecisionStatus, Moment, State
from daytwo.holds import is_of_node
from daytwo.store.surroundings import class_of
from daytwo.store.tables import ClusterRow, DecisionRow, FreezeRow, NodeRow, RepairRow

BEFORE_ITS_RIGHT: Final = frozenset({State.PROPOSED, State.APPROVED, State.QUARANTINING, State.WAITING, State.HELD})
LOOKED_AT: Final = frozenset({State.APPROVED, State.WAITING})
"""What waits here is looked at again within half a minute."""
KNOWN_HERE: Final = re.compile(r"^frozen by |^waits for the window |; the budget of |: this one is needed$")
"""What is written on a repair that the store can tell anew."""
MOST_JOBS: Final = 5
GONE: Final = "its workflow is gone from Temporal; it is looked for once more within 5 s, and then you are asked"


def around_now(session: Session, proposal: Proposal, now: datetime) -> Around:
    """What goes for a proposal that stands, and is no part of it."""
    row = session.get(RepairRow, proposal.repair_id)
    return around(session, proposal, would_wait(session, row, now) if row is not None else ())


def around(session: Session, proposal: Proposal, waits: tuple[str, ...]) -> Around:
    """What goes for a proposal whose approval would wait for this, with whether its node takes new jobs."""
    node = session.get(NodeRow, (proposal.cluster, proposal.node))
    facts = NodeFacts.model_validate(node.facts) if node and node.facts else None
    return Around(new_jobs=new_jobs(proposal, facts), waits=waits)


def would_wait(session: Session, row: RepairRow, now: datetime) -> tuple[str, ...]:
    """What an approval of what stands has to wait for, beginning with what stops everything; empty: nothing known."""
    cluster = session.get(ClusterRow, row.cluster)
    if row.open_key is None or row.state not in BEFORE_ITS_RIGHT or row.action is None or cluster is None:
        return ()
    policy, action = ClusterDefinition.model_validate(cluster.definition).policy, Action(row.action)
    found = [frozen(session, row.cluster, row.node)]
    if row.state == State.PROPOSED and action in policy.approval.two_person:
        found.append(f"a second person, for {action} needs two")
    if not action.touches_nothing:
        found.append(_others(session, row))
    if not action.touches_nothing and action is not Action.VERIFY and row.right_taken_at is None:
        found += [_window(row, policy, action, now), _too_many(session, row, policy, now)]
        ref = RepairRef(repair_id=row.id, cluster=row.cluster, node=row.node)
        found.append(budgets.over_budget(session, ref, policy.budget))
    return tuple(filter(None, found))


def waits_for(session: Session, row: RepairRow, now: datetime) -> str:
    """What an open repair waits for now, in one sentence; empty where nothing is known to be in its way."""
    if row.open_key is None:
        return ""
    if row.missing_since is not None:
        return GONE
    if row.state == State.HELD:
        return _hold(session, row)
    if row.state == State.DRAINING:
        return row.waiting_for or _jobs(row)
    if row.state not in LOOKED_AT or (row.waiting_for and not KNOWN_HERE.search(row.waiting_for)):
        return row.waiting_for
    found = [*_moment(session, row), *would_wait(session, row, now)]
    if not found and row.waiting_for:
        return "nothing any more; it is looked at again within half a minute"
    return "; ".join(found)


def frozen(session: Session, cluster: str, node: str) -> str:
    """Who has frozen acts on a node, and why; empty where nobody has."""
    scopes = ("*", cluster, f"{cluster}/{node}")
    standing = (col(FreezeRow.scope).in_(scopes), col(FreezeRow.thawed_at).is_(None))
    row = session.exec(select(FreezeRow).where(*standing)).first()
    return f"frozen by {row.actor}: {row.reason}" if row else ""


def proposal_of(row: RepairRow) -> Proposal | None:
    """The proposal of a repair; `None` without one, and for one of an older version that lacks a field."""
    try:
        return Proposal.model_validate(row.proposal) if row.proposal is not None else None
    except ValidationError:
        return None


def _others(session: Session, row: RepairRow) -> str:
    """Whose work on the node comes first, as its scheduler said last."""
    node = session.get(NodeRow, (row.cluster, row.node))
    facts = NodeFacts.model_validate(node.facts) if node and node.facts else None
    if facts is not None and is_taken(facts):
        return f"{taken_by(facts)}; nothing is done to it before that is lifted"
    return others_work(facts)


def _window(row: RepairRow, policy: Policy, action: Action, now: datetime) -> str:
    shut = policy.closed(action, class_of(row.fault) if row.fault else None, now)
    return shut.says if shut else ""


def _too_many(session: Session, row: RepairRow, policy: Policy, now: datetime) -> str:
    """By the jobs of the proposal: which ones run now only the scheduler knows."""
    proposal = proposal_of(row)
    jobs = {job.id for job in proposal.workloads if is_requeued(job)} if proposal else set()
    if not jobs:
        return ""
    since = now - max(HOUR, timedelta(seconds=policy.budget.interruption_apart_seconds))
    ref = RepairRef(repair_id=row.id, cluster=row.cluster, node=row.node)
    return too_many(jobs, repairs.interruptions(session, ref, since), policy.budget, now)


def _moment(session: Session, row: RepairRow) -> list[str]:
    last = _accepted(session, row, (DecisionKind.APPROVE, DecisionKind.RETRY))
    if last is None or last.moment == Moment.NOW or row.state != State.WAITING:
        return []
    return [f"its jobs have not ended, and it was approved for {last.moment}"]


def _hold(session: Session, row: RepairRow) -> str:
    last = _accepted(session, row, (DecisionKind.HOLD,))
    if last is None:
        return "held by somebody, until it is released"
    reason = f": {last.reason}" if last.reason else ""
    node = f" (the whole node is: daytwo nodes release {row.cluster}/{row.node})" if is_of_node(last) else ""
    return f"held by {last.actor} since {last.at:%Y-%m-%d %H:%MZ}{reason}{node}"


def _jobs(row: RepairRow) -> str:
    """Whose jobs leave the node, as they were proposed."""
    proposal = proposal_of(row)
    jobs = [f"{job.id} ({job.user})" for job in proposal.workloads] if proposal else []
    more = f" and {len(jobs) - MOST_JOBS} more" if len(jobs) > MOST_JOBS else ""
    return f"the jobs that were on the node leave it: {', '.join(jobs[:MOST_JOBS])}{more}" if jobs else ""


def _accepted(session: Session, row: RepairRow, kinds: tuple[DecisionKind, ...]) -> DecisionRow | None:
    mine = (DecisionRow.repair_id == row.id, col(DecisionRow.kind).in_(kinds))
    ended = select(DecisionRow).where(*mine, DecisionRow.status == DecisionStatus.ACCEPTED)
    return session.exec(ended.order_by(col(DecisionRow.at).desc())).first()
