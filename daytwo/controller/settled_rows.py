"""What a settled restore writes of one repair; every function takes the caller's write session. For `settling`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, col, func, select, update

from daytwo.domain.exchange import Run
from daytwo.domain.proposal import Proposal
from daytwo.domain.repair_states import END_OF
from daytwo.domain.vocabulary import NOT_KNOWN, DecisionStatus, State
from daytwo.store.tables import DecisionRow, FindingRow, IntentRow, NodeRow, RepairEventRow, RepairRow

FORGOTTEN: Final = "the store was restored from a backup: what was done to the node since is not known"
ENDED: Final = "it ended before the store was restored; Temporal knows how"


def row_for(session: Session, run: Run, now: datetime) -> RepairRow:
    """The row of a repair, made anew where the store has forgotten it; another open one of the node has ended."""
    row = session.get(RepairRow, run.repair_id, with_for_update=True)
    if row is not None:
        return row
    key = f"{run.cluster}/{run.node}"
    for other in session.exec(select(RepairRow).where(RepairRow.open_key == key).with_for_update()):
        other.open_key, other.right_taken_at, other.closed_at = None, None, now
        other.state, other.state_since, other.outcome = State.DISMISSED, now, f"followed by {run.repair_id}"
        session.add(other)
        give_up(session, other.id, other.outcome)
    session.flush()
    opened_at = min(run.stamps.values(), default=now)
    return RepairRow(
        id=run.repair_id,
        cluster=run.cluster,
        node=run.node,
        open_key=key,
        state_since=now,
        opened_at=opened_at,
        claimed_at=now,
        why="opened before the store was restored",
    )


def follow(row: RepairRow, run: Run) -> None:
    """Make the row say what the workflow says of itself."""
    row.state, row.revision, row.rung = run.state, run.revision, run.rung
    row.state_since = run.since or row.state_since
    row.attention, row.disturbed = run.attention, run.disturbed
    row.stamps = {name: at.isoformat() for name, at in run.stamps.items()}
    row.waiting_for, row.missing_since, row.outcome_digest = "", None, None
    if run.proposal is not None:
        row.proposal = run.proposal.model_dump(mode="json")
        row.action = run.approval.action if run.approval else run.proposal.action
        row.fault = run.proposal.fault


def end(row: RepairRow, run: Run, now: datetime) -> None:
    """The repair has ended as its workflow says; a dismissal stays what it was, with its snooze."""
    follow(row, run)
    at = run.since or now
    row.open_key, row.right_taken_at, row.closed_at = None, None, at
    row.outcome = ENDED
    if run.state is State.DISMISSED and run.snooze_seconds:
        row.snooze_until = at + timedelta(seconds=run.snooze_seconds)


def end_event(row: RepairRow, run: Run, last: int, now: datetime) -> RepairEventRow:
    """The line of the timeline at which it ended; `row` is as the store knew it, `last` its newest event."""
    return RepairEventRow(
        repair_id=run.repair_id,
        number=max(run.event_number, last + 1),
        at=run.since or now,
        event=END_OF[run.state],
        from_state=row.state,
        to_state=run.state,
        text=ENDED,
    )


def says(row: RepairRow) -> tuple[str, int, bool]:
    """What tells whether a row and a workflow agree."""
    return row.state, row.revision, row.disturbed


def asking_run(run: Run, row: RepairRow, last: int, now: datetime) -> Run:
    """The run that a person decides on. That something was done is assumed: the node does not return untested."""
    return Run(
        repair_id=run.repair_id,
        cluster=run.cluster,
        node=run.node,
        state=State.NEEDS_HELP,
        revision=max(run.revision, row.revision) + 1,
        rung=max(run.rung, row.rung),
        event_number=max(run.event_number, last) + 1,
        proposal=run.proposal,
        disturbed=True,
        interrupted=True,
        attention=f"{FORGOTTEN}; the last that is known is {run.state}",
        stamps=run.stamps,
        since=now,
        restarted=True,
    )


def last_number(session: Session, repair_id: str) -> int:
    """The number of the newest event that is written of a repair."""
    mine = select(func.max(RepairEventRow.number)).where(RepairEventRow.repair_id == repair_id)
    return session.exec(mine).one() or 0


def last_observation(session: Session, run: Run) -> int:
    """What the restored store has seen of the node: all of it is older than the tests that the repair ended with."""
    node = session.get(NodeRow, (run.cluster, run.node), with_for_update=True)
    mine = (FindingRow.cluster == run.cluster, FindingRow.node == run.node)
    return session.exec(select(func.max(FindingRow.last_observation)).where(*mine)).one() or 0 if node else 0


def void_delivered(session: Session, run: Run, now: datetime) -> None:
    """Decisions that the workflow has dealt with, though their rows do not say so: they must stop nothing any more."""
    pending = (col(DecisionRow.repair_id) == run.repair_id, col(DecisionRow.status) == DecisionStatus.PENDING)
    for row in session.exec(select(DecisionRow).where(*pending).with_for_update()):
        if row.id in run.seen and row.id not in run.pending:
            row.status, row.ended_at = DecisionStatus.VOID, now
            row.status_reason = "it was judged before the store was restored; the repair says what became of it"
            session.add(row)


def give_up(session: Session, repair_id: str, why: str) -> None:
    """Close what is unresolved of a repair: what became of it is not known here, and it must lock out nobody's act."""
    mine = (col(IntentRow.repair_id) == repair_id, col(IntentRow.open_node).is_not(None))
    given_up = {"state": "failed", "open_node": None, "proof_type": NOT_KNOWN, "error": why[:500]}
    session.exec(update(IntentRow).where(*mine).values(given_up))


def run_of(row: RepairRow) -> Run:
    """What the store alone knows of a repair that Temporal does not know."""
    return Run(
        repair_id=row.id,
        cluster=row.cluster,
        node=row.node,
        state=State(row.state),
        revision=row.revision,
        rung=row.rung,
        proposal=Proposal.model_validate(row.proposal) if row.proposal else None,
        stamps={name: datetime.fromisoformat(at) for name, at in row.stamps.items()},
    )
