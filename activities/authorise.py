"""Judges decisions by the rules as they are now, and writes down what people claim in the Temporal UI."""

from __future__ import annotations

import hashlib
import logging
from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session

from activities import signatures as do
from activities.beyond_workers import beyond_workers, own_branch
from activities.boundary import implements
from activities.by_policy import asks_a_person
from activities.in_incidents import hold_up, incident_around, refusal
from activities.two_persons import action_of, backing
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Cluster
from daytwo.domain.errors import DaytwoError
from daytwo.domain.exchange import AuthoriseInput, Claim, ClaimWritten, Verdict, WriteClaimInput
from daytwo.domain.message import clean
from daytwo.domain.repair_states import EVENT_OF, after
from daytwo.domain.vocabulary import Action, Channel, DecisionKind, DecisionStatus, Moment, State
from daytwo.service.decisions import proposed_moment
from daytwo.service.rights import NotAllowed, may
from daytwo.store import audit
from daytwo.store.tables import DecisionRow, IncidentRow, NodeRow, RepairRow
from daytwo.waits import frozen

TWO_STEPS = frozenset({DecisionKind.APPROVE, DecisionKind.RETRY})
"""Decisions that first lead to `approved` and are judged there, by the rules as they are then."""
FROZEN_WAIT_SECONDS = 5.0
LATE: Final = timedelta(seconds=60)
"""Who decided waits for the answer as long as this; of a later one they are told."""

log = logging.getLogger(__name__)


class AuthoriseActivities:
    """The activities `authorise` and `write-claim`."""

    def __init__(self, world: World) -> None:
        self.world = world

    @implements(do.AUTHORISE)
    async def authorise(self, arg: AuthoriseInput) -> Verdict:
        """Say whether a decision takes effect; unless it must wait, the answer is on its row when this returns."""
        cluster = await self.world.cluster(arg.ref)
        now = self.world.now()
        verdict = await self.world.write(lambda s: _judge_and_write(s, arg, cluster, now))
        if verdict.status == "wait":
            await self.world.say_waiting(arg.ref, verdict.why)
        if verdict.status in ("refused", "void") and await self.world.read(lambda s: _is_late(s, arg, now)):
            await self._tell_late(arg, verdict)
        return verdict

    async def _tell_late(self, arg: AuthoriseInput, verdict: Verdict) -> None:
        """Tell people that a decision has come to nothing after whoever made it had stopped waiting for its answer."""
        subject = f"{arg.ref.node}: {verdict.kind.value} of {arg.ref.repair_id} came to nothing"
        lines = (
            clean(f"{subject}: {verdict.status}, {verdict.why}"),
            clean(f"Decided by {verdict.actor}; nothing was done by it."),
            f"daytwo repairs show {arg.ref.repair_id}",
        )
        try:
            await self.world.notifier.tell(subject, "\n".join(lines), urgent=True)
        except DaytwoError as error:
            log.warning("%s: %s", subject, error)  # it stands on its row, and must not keep the repair from going on

    @implements(do.WRITE_CLAIM)
    async def write_claim(self, arg: WriteClaimInput) -> ClaimWritten:
        """Write the row of a claim made in the Temporal UI: identity claimed, not proven; none if it lacks a thing."""
        if problem := _claim_problem(arg):
            return ClaimWritten(problem=problem)
        now = self.world.now()
        return ClaimWritten(decision_id=await self.world.write(lambda s: _write_claim(s, arg, now)))


def _judge_and_write(session: Session, arg: AuthoriseInput, cluster: Cluster, now: datetime) -> Verdict:
    # One at a time: whether this approval is the second one depends on the other's answer.
    session.get(RepairRow, arg.ref.repair_id, with_for_update=True)
    row = session.get(DecisionRow, arg.decision_id, with_for_update=True)
    if row is None:
        # Whoever reaches Temporal can send any word: it must not end the repair.
        return Verdict(status="void", kind=DecisionKind.HOLD, actor="nobody", why=_unknown(arg))
    valid = {"valid_seconds": cluster.definition.policy.approval.valid_seconds}
    verdict = _judge(session, arg, row, cluster, now=now).model_copy(update=valid)
    if verdict.status not in ("received", "wait") and not _is_anothers(session, row, arg):
        _end(session, row, verdict, now)
    return verdict


def _is_anothers(session: Session, row: DecisionRow, arg: AuthoriseInput) -> bool:
    """True for a decision on another repair that is open: it is answered there."""
    other = session.get(RepairRow, row.repair_id) if row.repair_id != arg.ref.repair_id else None
    return other is not None and other.open_key is not None


def _is_late(session: Session, arg: AuthoriseInput, now: datetime) -> bool:
    """True for a person's decision that has ended just now, and so long after it was made that nobody waits for it."""
    row = session.get(DecisionRow, arg.decision_id)
    if row is None or row.channel == Channel.POLICY or row.ended_at != now:
        return False
    return now - row.at > LATE


def _unknown(arg: AuthoriseInput) -> str:
    return f"decision: found {arg.decision_id[:80]!r}, which is not in the store"


def _judge(session: Session, arg: AuthoriseInput, row: DecisionRow, cluster: Cluster, *, now: datetime) -> Verdict:
    answer = _Answer(row)
    if row.status != DecisionStatus.PENDING:
        return _again(arg, row, answer)
    if problem := _stale(arg, row):
        return answer.say("void", problem)
    if row.id != arg.deciding and answer.kind in TWO_STEPS:
        return answer.say("received", "")
    if problem := _forbidden(session, arg, row, cluster):
        return answer.say("refused", problem)
    action = action_of(row, arg.proposed_action) if _acts(answer.kind) else None
    hold_seconds = cluster.definition.policy.breaker.hold_seconds
    incident = incident_around(session, arg.ref, action, hold_seconds=hold_seconds, now=now)
    if incident and row.channel != Channel.POLICY and (problem := refusal(incident, row.reason)):
        return answer.say("refused", problem)
    others = backing(session, row, cluster.definition.policy, arg.proposed_action, now=now)
    if _acts(answer.kind) and (others.refused or others.missing):
        return answer.say("refused" if others.refused else "counted", others.refused or others.missing)
    if row.id == arg.deciding and (stop := frozen(session, arg.ref.cluster, arg.ref.node) or _held_up(row, incident)):
        return answer.say("wait", stop)
    return answer.say("accepted", f"approved by {', '.join(others.beside)} before" if others.beside else "")


def _again(arg: AuthoriseInput, row: DecisionRow, answer: _Answer) -> Verdict:
    """A retry of this activity after its answer was written gets the same answer. What is sent once more gets none."""
    used = row.id != arg.deciding and answer.kind in TWO_STEPS
    if used or (row.repair_id, row.revision) != (arg.ref.repair_id, arg.revision):
        return answer.say("void", f"it has ended already: {row.status}")
    return answer.say(row.status, row.status_reason)


class _Answer:
    """Fills in the part of a verdict that is the decision's own."""

    def __init__(self, row: DecisionRow) -> None:
        self._row = row
        self.kind = DecisionKind(row.kind)

    def say(self, status: str, why: str) -> Verdict:
        row = self._row
        return Verdict.model_validate(
            {
                "status": status,
                "kind": row.kind,
                "actor": row.actor,
                "reason": "; ".join(filter(None, (row.reason, why if status == "accepted" else ""))),
                "why": why,
                "action": row.action,
                "moment": row.moment,
                "snooze_seconds": row.snooze_seconds,
                "wait_seconds": FROZEN_WAIT_SECONDS,
            }
        )


def _stale(arg: AuthoriseInput, row: DecisionRow) -> str:
    if row.repair_id != arg.ref.repair_id:
        return f"it is about repair {row.repair_id}; open on {arg.ref.node} is {arg.ref.repair_id}"
    if row.revision != arg.revision:
        return f"it is about revision {row.revision}; what stands is revision {arg.revision}"
    accepted = after(arg.state, EVENT_OF[DecisionKind(row.kind)], held_from=State.PROPOSED)
    if row.id != arg.deciding and accepted is None:
        return f"a repair that is {arg.state} does not take {row.kind}"
    return ""


def _forbidden(session: Session, arg: AuthoriseInput, row: DecisionRow, cluster: Cluster) -> str:
    kind = DecisionKind(row.kind)
    if kind is DecisionKind.DISMISS and (arg.interrupted or repairs.has_requeued(session, arg.ref.repair_id)):
        instead = "approve it, --action verify only tests," if arg.state is State.PROPOSED else "let it end,"
        return f"work was interrupted already, so the node returns by its tests alone: {instead} or hold it"
    action = action_of(row, arg.proposed_action)
    if kind in TWO_STEPS and (
        problem := _impossible(action, row, cluster) or _untested(action, arg) or _left(session, arg)
    ):
        return problem
    if kind in TWO_STEPS and (problem := own_branch(session, arg.ref.node, action)):
        return problem
    if row.channel == Channel.POLICY:
        repair = session.get_one(RepairRow, arg.ref.repair_id)
        return asks_a_person(cluster.definition.policy, repair.fault, action)
    allowed = may(cluster.definition.policy, row.actor, action if _acts(kind) else None, verified=row.verified)
    if isinstance(allowed, NotAllowed):
        return allowed.why
    beyond = beyond_workers(session, arg.ref, cluster.definition.policy, allowed.roles) if _acts(kind) else ""
    return _unverified_interrupts(arg, row) or beyond


def _unverified_interrupts(arg: AuthoriseInput, row: DecisionRow) -> str:
    if row.verified or not arg.disturbed:
        return ""
    return f"{row.actor} is a claimed identity that nothing proves; something was done to the node, so use the CLI"


def _acts(kind: DecisionKind) -> bool:
    return kind in TWO_STEPS or kind in (DecisionKind.REMOVE, DecisionKind.RETURN_AFTER_TESTS)


def _impossible(action: Action | None, row: DecisionRow, cluster: Cluster) -> str:
    if action is None:
        return "nothing is proposed, and it names no action"
    if row.moment == Moment.NEXT_CHECKPOINT:
        return "this cluster has no way to know a checkpoint; approve for now or when-idle"
    able = cluster.able()
    if action in able:
        return ""
    return f"no hardware driver of {cluster.definition.name} can {action}; it can {', '.join(sorted(able))} (--action)"


def _untested(action: Action | None, arg: AuthoriseInput) -> str:
    """A note ends a repair: after something was done to a node it comes back by its tests alone."""
    if action is None or not action.touches_nothing or not arg.disturbed:
        return ""
    return (
        f"something was done to the node, so {action} cannot end this; approve --action verify, or dismiss it to decide"
    )


def _left(session: Session, arg: AuthoriseInput) -> str:
    node = session.get(NodeRow, (arg.ref.cluster, arg.ref.node))
    gone = node is not None and node.left_at is not None
    return f"{arg.ref.node} is no longer in the definition of {arg.ref.cluster}: nothing is done to it" if gone else ""


def _held_up(row: DecisionRow, incident: IncidentRow | None) -> str:
    return hold_up(incident) if incident and row.channel == Channel.POLICY else ""


def _end(session: Session, row: DecisionRow, verdict: Verdict, now: datetime) -> None:
    if row.status != DecisionStatus.PENDING:
        return
    row.status, row.status_reason, row.ended_at = verdict.status, verdict.why, now
    session.add(row)
    told = {"decision": row.id, "kind": row.kind, "why": verdict.why}
    audit.append(session, actor=row.actor, act=f"decision-{verdict.status}", subject=row.repair_id, data=told, now=now)


def _claim_problem(arg: WriteClaimInput) -> str:
    claim = arg.claim
    if claim.problem:
        return claim.problem
    if claim.repair_id != arg.ref.repair_id or claim.revision != arg.revision:
        return (
            f"signal {claim.name!r} is about repair {claim.repair_id} revision {claim.revision}; "
            f"what stands is repair {arg.ref.repair_id} revision {arg.revision}"
        )
    return ""


def _write_claim(session: Session, arg: WriteClaimInput, now: datetime) -> str:
    claim = arg.claim
    # What stops an act must not be written between that act's last look and its sending.
    repair = session.get(RepairRow, arg.ref.repair_id, with_for_update=True)
    ident = "d-temporal-" + hashlib.sha256(f"{arg.ref.repair_id} {claim.key}".encode()).hexdigest()[:16]
    if session.get(DecisionRow, ident) is None:
        row = _claim_row(ident, claim, now)
        row.moment = proposed_moment(repair) if repair and claim.name == DecisionKind.APPROVE else Moment.NOW
        session.add(row)
        told = {"decision": ident, "who": claim.who, "reason": claim.reason}
        audit.append(
            session, actor=_claimed_actor(claim), act=claim.name, subject=arg.ref.repair_id, data=told, now=now
        )
    return ident


def _claimed_actor(claim: Claim) -> str:
    return f"temporal:{claim.who or 'nobody'}"


def _claim_row(ident: str, claim: Claim, now: datetime) -> DecisionRow:
    return DecisionRow(
        id=ident,
        request_id=ident,
        repair_id=claim.repair_id or "",
        revision=claim.revision or 0,
        kind=claim.name,
        actor=_claimed_actor(claim),
        channel=Channel.TEMPORAL,
        verified=False,
        reason=claim.reason,
        at=now,
    )
