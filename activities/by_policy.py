"""Whether the policy still approves by itself what it approved, or is about to: who applies another means it at once.

Asked by `announce`, `authorise` and `take-right`.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session, col, select

from activities.in_incidents import hold_up, incident_around
from daytwo.domain.cases import entry_of
from daytwo.domain.exchange import StepInput
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import Action, Channel, DecisionKind, DecisionStatus, Mode
from daytwo.faults.catalogue import catalogue
from daytwo.store.tables import DecisionRow


def asks_a_person(policy: Policy, fault: str | None, action: Action | None) -> str:
    """Why this action for this fault needs somebody's word now, or an empty string where the policy's own is enough."""
    if fault is None or action is None:
        return "nothing is proposed that the policy could approve"
    if action in policy.approval.never_automatic:
        return f"{action} is never automatic by the policy as it is now: a person decides"
    mode = policy.rule_for(entry_of(catalogue(), fault)).mode
    return "" if mode is Mode.AUTO else f"{fault} is not automatic any more ({mode} by the policy): a person decides"


def holds_back(session: Session, arg: StepInput, policy: Policy, now: datetime) -> str:
    """What a repair that the policy approved waits for before it acts: rules may have changed, an incident begun."""
    approvals = select(DecisionRow.channel).where(
        DecisionRow.repair_id == arg.ref.repair_id,
        DecisionRow.status == DecisionStatus.ACCEPTED,
        col(DecisionRow.kind).in_((DecisionKind.APPROVE, DecisionKind.RETRY)),
    )
    if session.exec(approvals.order_by(col(DecisionRow.ended_at).desc())).first() != Channel.POLICY:
        return ""
    found = incident_around(session, arg.ref, arg.action, hold_seconds=policy.breaker.hold_seconds, now=now)
    fault = arg.proposal.fault if arg.proposal else None
    return (hold_up(found) if found else "") or asks_a_person(policy, fault, arg.action)
