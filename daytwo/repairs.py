"""What is written of a repair: opened, claimed, each event, the right to act, and the end. One transaction each.

Called by the reconciler (open) and by activities (the rest); every function takes the caller's write session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlmodel import Session, col, select, update

from daytwo.domain import exchange as x
from daytwo.domain.asked import ASKED
from daytwo.domain.cases import entry_of
from daytwo.domain.interruptions import Interruption
from daytwo.domain.machines import believed
from daytwo.domain.policy import Budget, Policy
from daytwo.domain.proposal import Proposal
from daytwo.domain.repair_states import Event
from daytwo.domain.seams import ActKind
from daytwo.domain.vocabulary import Clears, DecisionKind, DecisionStatus, FindingStatus, NodeRole, State
from daytwo.faults.catalogue import catalogue
from daytwo.left_marks import Removed
from daytwo.store import audit, locks
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
OUT: Final = frozenset({"DRAIN", "DOWN", "FAIL", "REBOOT_ISSUED"})
"""Scheduler states of a node that takes no work; nor does one that somebody keeps for maintenance now."""


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


def take_right(session: Session, ref: x.RepairRef, budget: Budget, now: datetime) -> str:
    """Take the permission to have one more node out. Returns why not, or nothing when it is taken.

    Nodes of *others* are counted that are out for any reason, so that at least one may always be repaired; those that
    only wait for their right behind this one are not, or each would wait for the other. One at a time counts in a
    cluster.
    """
    locks.hold(session, locks.Lock.RIGHTS, ref.cluster)
    row = session.get_one(RepairRow, ref.repair_id, with_for_update=True)
    if row.right_taken_at is not None:
        return ""
    if problem := over_budget(session, ref, budget):
        return problem
    row.right_taken_at = now
    session.add(row)
    return ""


def over_budget(session: Session, ref: x.RepairRef, budget: Budget) -> str:
    """Why one more node may not be out now, or nothing; read only."""
    this = session.get_one(NodeRow, (ref.cluster, ref.node))
    peers = peers_in(session, ref.cluster, this.pool)
    acting = _acting_nodes(session, ref.cluster)
    aside = _waiting_behind(session, ref) | {ref.node}
    out = {n.name for n in peers if n.name not in aside and (n.name in acting or n.is_out)}
    allowed = allowed_out(len(peers), budget)
    if len(out) >= allowed:
        named = ", ".join([*sorted(out)[:5], *(["…"] if len(out) > 5 else [])])
        some = "1 node is out" if len(out) == 1 else f"{len(out)} nodes are out"
        return f"{some} ({named}); the budget of pool {this.pool} allows {allowed}"
    if short := _quorum(session, this):
        return short
    theirs = _domains_of(session, ref.cluster, acting - {ref.node})
    for domain in this.domains:
        beside = sorted(name for name, domains in theirs.items() if domain in domains)
        if len(beside) >= budget.acting_per_domain:
            return f"{beside[0]} is being repaired; the budget of {domain} allows {budget.acting_per_domain} at a time"
    return ""


def _quorum(session: Session, this: NodeRow) -> str:
    """Why a node that others depend on may not go now: of three or more a majority stays, of two the other one."""
    if this.role == NodeRole.WORKER:
        return ""
    alike = select(NodeRow).where(
        NodeRow.cluster == this.cluster, NodeRow.role == this.role, col(NodeRow.left_at).is_(None)
    )
    rows = session.exec(alike).all()
    out = [row.name for row in rows if row.name != this.name and _is_out(row.facts, row.facts_at)]
    if len(out) < max(1, (len(rows) - 1) // 2):
        return ""
    return f"{', '.join(out[:5])} of {len(rows)} {this.role} nodes are out: this one is needed"


def allowed_out(pool_nodes: int, budget: Budget) -> int:
    """How many nodes of a pool of this size may be acted on at once; never less than one."""
    return max(1, min(int(pool_nodes * budget.acting_share), budget.acting_nodes))


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


class Peer(NamedTuple):
    """A node of a pool, as far as budgets ask. `is_out`: it takes no work, for any reason, or cannot be read."""

    name: str
    domains: Sequence[str]
    is_out: bool


def peers_in(session: Session, cluster: str, pool: str) -> list[Peer]:
    """The nodes of a pool, less those that were removed.

    Columns, not rows, for a look at one node asks for all ten thousand beside it.
    """
    columns = select(NodeRow.name, NodeRow.domains, NodeRow.facts, NodeRow.facts_at)
    here = (NodeRow.cluster == cluster, NodeRow.pool == pool, col(NodeRow.left_at).is_(None))
    found = session.exec(columns.where(*here)).all()
    gone = Removed(session, cluster)
    return [
        Peer(name, domains, _is_out(facts, facts_at))
        for name, domains, facts, facts_at in found
        if not gone.has(name, facts)
    ]


def _is_out(facts: Mapping[str, Any] | None, facts_at: datetime | None) -> bool:
    if facts is None:
        return facts_at is not None
    return not facts["responding"] or bool(facts.get("planned")) or not OUT.isdisjoint(facts["states"])


def _waiting_behind(session: Session, ref: x.RepairRef) -> set[str]:
    """Nodes that are out because their repair waits for its right, and was opened later than this one."""
    behind = (
        RepairRow.cluster == ref.cluster,
        RepairRow.state == State.WAITING,
        col(RepairRow.open_key).is_not(None),
        col(RepairRow.right_taken_at).is_(None),
        col(RepairRow.id) > ref.repair_id,
    )
    return set(session.exec(select(RepairRow.node).where(*behind)).all())


def _domains_of(session: Session, cluster: str, nodes: set[str]) -> dict[str, list[str]]:
    """A rack may hold nodes of several pools."""
    found = select(NodeRow.name, NodeRow.domains).where(NodeRow.cluster == cluster, col(NodeRow.name).in_(nodes))
    return {name: list(domains) for name, domains in session.exec(found)}


def _acting_nodes(session: Session, cluster: str) -> set[str]:
    holding = (
        RepairRow.cluster == cluster,
        col(RepairRow.right_taken_at).is_not(None),
        col(RepairRow.open_key).is_not(None),
    )
    return set(session.exec(select(RepairRow.node).where(*holding)).all())
