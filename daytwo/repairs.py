"""What is written of a repair: opened, claimed, each event, and the end. One transaction each.

Called by the reconciler (open) and by activities (the rest); every function takes the caller's write session.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlmodel import Session, col, select, update

from daytwo.domain import exchange as x
from daytwo.domain.asked import ASKED
from daytwo.domain.cases import entry_of
from daytwo.domain.interruptions import Interruption
from daytwo.domain.machines import believed
from daytwo.domain.policy import Policy
from daytwo.domain.proposal import Proposal
from daytwo.domain.repair_states import Event
from daytwo.domain.seams import ActKind
from daytwo.domain.vocabulary import Clears, DecisionKind, DecisionStatus, FindingStatus, State
from daytwo.faults.catalogue import catalogue
from daytwo.store import audit
from daytwo.store.tables import (
    ClusterRow,
    DecisionRow,
    FindingRow,
    IntentRow,
    NodeRequestRow,
    NodeRow,
    RepairEventRow,
    RepairRow,
)

OPENING = "opening"
LONGEST_WAIT = 500
"""Characters of what a repair waits for."""


def open_row(
    session: Session, repair_id: str, node: NodeRow, *, why: str, opened_by: str, policy_revision: int, now: datetime
) -> RepairRow:
    """Add the row that makes the node's repair unique; the unique `open_key` refuses a second one."""
    row = RepairRow(
        id=repair_id,
        cluster=node.cluster,
        node=node.name,
        open_key=f"{node.cluster}/{node.name}",
        state=OPENING,
        state_since=now,
        policy_revision=policy_revision,
        opened_by=opened_by,
        why=why,
        opened_at=now,
    )
    session.add(row)
    audit.append(
        session, actor=opened_by, act="open-repair", subject=repair_id, data={"node": node.name, "why": why}, now=now
    )
    session.flush()
    return row


def claim(session: Session, ref: x.RepairRef, now: datetime) -> x.Claimed:
    """Take the row for a workflow run; a closed or unknown repair is not owned."""
    row = session.get(RepairRow, ref.repair_id, with_for_update=True)
    if row is None:
        return x.Claimed(owned=False, why=f"repair {ref.repair_id} is not in the store")
    if row.open_key is None:
        return x.Claimed(owned=False, why=f"repair {ref.repair_id} has ended: {row.state}")
    row.claimed_at = now
    if row.state == OPENING:
        row.state, row.state_since = State.PROPOSED, now
    session.add(row)
    return x.Claimed(owned=True)


def record(session: Session, event: x.RecordInput) -> bool:
    """Write one event and the repair's state after it; `False` if this event is there already (a retry)."""
    row = session.get_one(RepairRow, event.ref.repair_id, with_for_update=True)
    if session.get(RepairEventRow, (event.ref.repair_id, event.number)):
        return False
    session.add(_event_row(event))
    if event.from_state is State.APPROVED and event.to_state in (State.PROPOSED, State.NEEDS_HELP):
        _end_unused(session, row, event)
    row.state, row.state_since = event.to_state, event.at
    row.revision, row.rung, row.attention = event.revision, event.rung, event.attention
    row.disturbed = row.disturbed or event.disturbed
    row.stamps = {name: at.isoformat() for name, at in event.stamps.items()}
    if event.proposal is not None:
        row.proposal = event.proposal.model_dump(mode="json")
        # What was approved of an earlier revision says nothing of the one that stands.
        approved = event.approved_action if event.from_state is not State.PROPOSED else None
        row.action, row.fault = approved or event.proposal.action, event.proposal.fault
    row.waiting_for = ""
    session.add(row)
    audit.append(
        session,
        actor=event.actor,
        act=event.event,
        subject=row.id,
        data={"to": event.to_state, "text": event.text},
        now=event.at,
    )
    touch(session, event.ref.cluster, event.ref.node)
    return True


def _end_unused(session: Session, row: RepairRow, event: x.RecordInput) -> None:
    """End the approval that led here and was not used, or it would be brought again for as long as the repair lasts."""
    unused = (
        col(DecisionRow.repair_id) == row.id,
        col(DecisionRow.status) == DecisionStatus.PENDING,
        col(DecisionRow.kind).in_((DecisionKind.APPROVE, DecisionKind.RETRY)),
        col(DecisionRow.at) <= row.state_since,
    )
    ended = {"status": DecisionStatus.VOID, "status_reason": event.text[:500], "ended_at": event.at}
    session.exec(update(DecisionRow).where(*unused).values(ended))


def _event_row(event: x.RecordInput) -> RepairEventRow:
    return RepairEventRow(
        repair_id=event.ref.repair_id,
        number=event.number,
        at=event.at,
        event=event.event,
        from_state=event.from_state,
        to_state=event.to_state,
        actor=event.actor,
        text=event.text,
        data={"revision": event.revision, "rung": event.rung},
    )


def close(session: Session, closing: x.CloseInput) -> None:
    """End the repair: terminal, its findings cleared by it, the right freed, open questions withdrawn, the node due."""
    if not record(session, closing.event):
        return
    ref, at = closing.event.ref, closing.event.at
    row = session.get_one(RepairRow, ref.repair_id)
    row.open_key, row.right_taken_at, row.closed_at = None, None, at
    row.outcome = closing.event.text
    row.snooze_until = at + timedelta(seconds=snoozed) if (snoozed := _snoozed(session, closing)) else None
    session.add(row)
    # A note is no test: what earlier tests have found stands.
    if closing.judged_up_to and closing.event.event is not Event.NOTED:
        # `record` has touched the node, and intake folds findings under its lock: none is folded meanwhile.
        clear_findings(session, ref, closing.judged_up_to, at)
        _believe_inventory(session, ref)
    _void_what_is_open(session, ref, closing.event.to_state, at)


def _believe_inventory(session: Session, ref: x.RepairRef) -> None:
    """What the tests have found is what the node has from now on, also where a person accepted another part."""
    node = session.get_one(NodeRow, (ref.cluster, ref.node))
    node.inventory = believed(node.inventory, node.expected_gpus)
    session.add(node)


def _snoozed(session: Session, closing: x.CloseInput) -> float | None:
    """A dismissal carries a snooze, the policy's where nobody named one: else its node is contained again at once."""
    proposal = session.get_one(RepairRow, closing.event.ref.repair_id).proposal or {}
    if proposal.get("fault") == ASKED:
        return None  # no fault was seen that could be kept quiet
    if closing.event.to_state is not State.DISMISSED or closing.snooze_seconds is not None:
        return closing.snooze_seconds
    return _policy(session, closing.event.ref.cluster).timing.snooze_seconds


def _policy(session: Session, cluster: str) -> Policy:
    row = session.get(ClusterRow, cluster)
    return Policy.model_validate(row.definition.get("policy", {})) if row else Policy()


def clear_findings(session: Session, ref: x.RepairRef, up_to: int, at: datetime) -> None:
    """What this repair has judged fires no more; nothing is folded meanwhile, for the node's row is locked."""
    mine = (
        col(FindingRow.cluster) == ref.cluster,
        col(FindingRow.node) == ref.node,
        col(FindingRow.last_observation) <= up_to,
    )
    firing = (*mine, col(FindingRow.status) == FindingStatus.FIRING)
    judged = _judged(session, ref, set(session.exec(select(FindingRow.fault).where(*firing))))
    cleared = {"status": FindingStatus.CLEARED, "cleared_at": at, "cleared_by": ref.repair_id, "judged_up_to": up_to}
    session.exec(update(FindingRow).where(*firing, col(FindingRow.fault).in_(judged)).values(cleared))
    settled = (*mine, col(FindingRow.status) == FindingStatus.CLEARED)
    session.exec(update(FindingRow).where(*settled).values(judged_up_to=up_to, turns=[], quiet_since=None))


def _judged(session: Session, ref: x.RepairRef, firing: set[str]) -> set[str]:
    """Of what fires, what a repair has dealt with: its own faults, and those that no reading clears.

    The others stay until they are read to be gone: no test has looked at them, and an agent tells of each but once.
    """
    repair = session.get(RepairRow, ref.repair_id)
    if repair is None or repair.proposal is None:
        return firing
    policy, about = _policy(session, ref.cluster), {repair.proposal["fault"], *repair.proposal.get("faults", ())}
    by_reading = {f for f in firing if policy.rule_for(entry_of(catalogue(), f)).clears is Clears.READING}
    return (firing - by_reading) | (firing & about)


def _void_what_is_open(session: Session, ref: x.RepairRef, state: State, at: datetime) -> None:
    pending = (col(DecisionRow.repair_id) == ref.repair_id, col(DecisionRow.status) == "pending")
    session.exec(
        update(DecisionRow)
        .where(*pending)
        .values(status="void", status_reason=f"the repair has ended: {state}", ended_at=at)
    )
    asked = (
        col(NodeRequestRow.repair_id) == ref.repair_id,
        col(NodeRequestRow.state).in_(("open", "offered", "accepted")),
    )
    session.exec(update(NodeRequestRow).where(*asked).values(state="withdrawn", ended_at=at))


def stamp(session: Session, repair_id: str, name: str, at: datetime) -> None:
    """Note when something happened for the first time, where no event says it."""
    row = session.get_one(RepairRow, repair_id, with_for_update=True)
    row.stamps = {name: at.isoformat(), **row.stamps}
    session.add(row)


def refresh(session: Session, proposal: Proposal) -> None:
    """Show what stands as it is now; nothing that anybody decides on changes, so the revision stays."""
    mine = (col(RepairRow.id) == proposal.repair_id, col(RepairRow.revision) == proposal.revision)
    session.exec(update(RepairRow).where(*mine).values(proposal=proposal.model_dump(mode="json")))


def note_waiting(session: Session, repair_id: str, why: str) -> None:
    """Say what a repair that does not move is waiting for; the next event takes it away."""
    session.exec(update(RepairRow).where(col(RepairRow.id) == repair_id).values(waiting_for=why[:LONGEST_WAIT]))


def waiting_for(session: Session, repair_id: str) -> str:
    """What is written that a repair waits for."""
    return session.exec(select(RepairRow.waiting_for).where(RepairRow.id == repair_id)).first() or ""


def touch(session: Session, cluster: str, node: str) -> None:
    """Mark a node due, so that the reconciler looks at it."""
    this = (col(NodeRow.cluster) == cluster, col(NodeRow.name) == node)
    session.exec(update(NodeRow).where(*this).values(due=NodeRow.due + 1))


def has_requeued(session: Session, repair_id: str) -> bool:
    """True if a requeue of this repair was sent, or may have been: then nothing can be taken back."""
    sent = (IntentRow.repair_id == repair_id, IntentRow.kind == ActKind.REQUEUE, col(IntentRow.tries) > 0)
    return session.exec(select(IntentRow.id).where(*sent)).first() is not None


def interruptions(session: Session, ref: x.RepairRef, since: datetime) -> list[Interruption]:
    """The requeues that other repairs of the cluster have sent since then."""
    sent = (
        IntentRow.cluster == ref.cluster,
        IntentRow.kind == ActKind.REQUEUE,
        IntentRow.repair_id != ref.repair_id,
        col(IntentRow.tries) > 0,
        col(IntentRow.updated_at) > since,
    )
    rows = session.exec(select(IntentRow.target, IntentRow.updated_at).where(*sent))
    return [Interruption(target, at) for target, at in rows]
