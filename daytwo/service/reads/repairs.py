"""Repairs as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from daytwo import evidence, waits
from daytwo import repairs as repair_rows
from daytwo.domain.message import as_text
from daytwo.domain.vocabulary import Decision, State
from daytwo.service.decisions import as_decision
from daytwo.service.models.evidence import EvidenceView
from daytwo.service.models.paging import Page
from daytwo.service.models.repairs import (
    CheckResult,
    CheckRun,
    IntentView,
    RepairDetail,
    RepairEvent,
    RepairProgress,
    RepairSummary,
)
from daytwo.service.reads.lookup import find_cluster, find_node, find_repair, known_words
from daytwo.service.reads.paging import Filter, page, view
from daytwo.store.tables import CheckResultRow, CheckRunRow, DecisionRow, IntentRow, RepairEventRow, RepairRow

STATES = ("opening", *State)
DETAIL_ROWS = 200
"""How many rows of each kind one repair is shown with; the newest are kept."""


def repairs(session: Session, wanted: Filter) -> Page[RepairSummary]:
    """Repairs, newest first. Raises `NotFound` or `BadInput` for a filter that names nothing known."""
    found = select(RepairRow).order_by(col(RepairRow.id).desc()).limit(wanted.limit + 1)
    if wanted.active_only:
        found = found.where(col(RepairRow.open_key).is_not(None))
    if wanted.states:
        found = found.where(col(RepairRow.state).in_(known_words(wanted.states, STATES)))
    if wanted.cluster:
        found = found.where(RepairRow.cluster == find_cluster(session, wanted.cluster).name)
    if wanted.node:
        node = find_node(session, wanted.node)
        found = found.where(RepairRow.cluster == node.cluster, RepairRow.node == node.name)
    if wanted.after:
        found = found.where(RepairRow.id < wanted.after)
    return page(session.exec(found).all(), wanted.limit, view=summary, key=lambda row: row.id)


def repair(session: Session, repair_id: str, now: datetime) -> RepairDetail:
    """One repair with its timeline, decisions, acts and tests. Raises `NotFound`."""
    row = find_repair(session, repair_id)
    would_wait = waits.would_wait(session, row, now) if row.state not in waits.LOOKED_AT else ()
    return RepairDetail(
        **summary(row).model_dump() | {"waiting_for": waits.waits_for(session, row, now)},
        message=_message(session, row, would_wait if row.state == State.PROPOSED else ()),
        would_wait_for=would_wait,
        interrupted=repair_rows.has_requeued(session, repair_id),
        proposal=row.proposal,
        stamps=row.stamps,
        opened_by=row.opened_by,
        why=row.why,
        snooze_until=row.snooze_until,
        timeline=_last_events(session, repair_id),
        decisions=_decisions(session, repair_id),
        intents=_intents(session, repair_id),
        checks=_check_runs(session, repair_id),
        evidence=tuple(view(EvidenceView, each) for each in evidence.of_repair(session, repair_id)),
    )


def progress(session: Session, repair_id: str, after: int) -> RepairProgress:
    """What happened to a repair after event number `after`. Raises `NotFound`."""
    row = find_repair(session, repair_id)
    found = select(RepairEventRow).where(RepairEventRow.repair_id == repair_id, RepairEventRow.number > after)
    events = session.exec(found.order_by(col(RepairEventRow.number)).limit(DETAIL_ROWS)).all()
    return view(RepairProgress, row, open=row.open_key is not None, events=tuple(view(RepairEvent, e) for e in events))


def summary(row: RepairRow) -> RepairSummary:
    """A repair as a list shows it."""
    proposal: dict[str, Any] = row.proposal or {}
    said = {"title": proposal.get("title", ""), "severity": proposal.get("severity", "")}
    return view(RepairSummary, row, open=row.open_key is not None, **said)


def _message(session: Session, row: RepairRow, would_wait: tuple[str, ...]) -> str:
    if row.proposal is None:
        return ""
    proposal = waits.proposal_of(row)
    if proposal is None:
        # A proposal of an older version that lacks a field must not hide the repair.
        return str(row.proposal.get("title", ""))
    return as_text(proposal, waits.around(session, proposal, would_wait) if row.open_key is not None else None)


def _last_events(session: Session, repair_id: str) -> tuple[RepairEvent, ...]:
    found = select(RepairEventRow).where(RepairEventRow.repair_id == repair_id)
    rows = session.exec(found.order_by(col(RepairEventRow.number).desc()).limit(DETAIL_ROWS)).all()
    return tuple(view(RepairEvent, row) for row in reversed(rows))


def _decisions(session: Session, repair_id: str) -> tuple[Decision, ...]:
    found = select(DecisionRow).where(DecisionRow.repair_id == repair_id)
    rows = session.exec(found.order_by(col(DecisionRow.at).desc()).limit(DETAIL_ROWS)).all()
    return tuple(as_decision(row) for row in reversed(rows))


def _intents(session: Session, repair_id: str) -> tuple[IntentView, ...]:
    found = select(IntentRow).where(IntentRow.repair_id == repair_id)
    rows = session.exec(found.order_by(col(IntentRow.created_at).desc()).limit(DETAIL_ROWS)).all()
    return tuple(view(IntentView, row) for row in reversed(rows))


def _check_runs(session: Session, repair_id: str) -> tuple[CheckRun, ...]:
    found = select(CheckRunRow).where(CheckRunRow.repair_id == repair_id)
    runs = session.exec(found.order_by(col(CheckRunRow.started_at)).limit(DETAIL_ROWS)).all()
    results = session.exec(select(CheckResultRow).where(col(CheckResultRow.run_id).in_([run.id for run in runs]))).all()
    return tuple(
        view(CheckRun, run, results=tuple(view(CheckResult, each) for each in results if each.run_id == run.id))
        for run in runs
    )
