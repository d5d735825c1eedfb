"""What people have asked of nodes for a while: snoozed faults, an agent that holds no GPU. Called by `reads.nodes`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session, col, select

from daytwo import node_requests
from daytwo.domain.vocabulary import DecisionKind, DecisionStatus, State
from daytwo.service.models.nodes import QuietView, SnoozeView
from daytwo.service.reads.lookup import node_key
from daytwo.store.tables import AuditRow, DecisionRow, NodeRequestRow, NodeRow, RepairRow


class Pauses(NamedTuple):
    """By `cluster/node`: what goes on there now."""

    snoozes: dict[str, tuple[SnoozeView, ...]]
    quiet: dict[str, QuietView]


def pauses_of(session: Session, rows: Sequence[NodeRow], now: datetime) -> Pauses:
    """What goes on at these nodes."""
    return Pauses(_snoozes(session, rows, now), _quiet(session, rows, now))


def _snoozes(session: Session, rows: Sequence[NodeRow], now: datetime) -> dict[str, tuple[SnoozeView, ...]]:
    """Dismissals whose time is not over, the longest first."""
    keys = {node_key(row) for row in rows}
    mine = (col(RepairRow.node).in_([row.name for row in rows]), RepairRow.state == State.DISMISSED)
    found = select(RepairRow).where(*mine, col(RepairRow.snooze_until) > now)
    repairs = session.exec(found.order_by(col(RepairRow.snooze_until).desc())).all()
    by = _dismissals(session, [repair.id for repair in repairs])
    snoozes: dict[str, list[SnoozeView]] = defaultdict(list)
    for repair in repairs:
        key = f"{repair.cluster}/{repair.node}"
        if key in keys and repair.snooze_until is not None:
            snoozes[key].append(_snooze(repair, repair.snooze_until, by.get(repair.id)))
    return {key: tuple(each) for key, each in snoozes.items()}


def _dismissals(session: Session, repairs: Sequence[str]) -> dict[str, DecisionRow]:
    if not repairs:
        return {}
    theirs = (col(DecisionRow.repair_id).in_(repairs), DecisionRow.kind == DecisionKind.DISMISS)
    found = select(DecisionRow).where(*theirs, DecisionRow.status == DecisionStatus.ACCEPTED)
    return {row.repair_id: row for row in session.exec(found.order_by(col(DecisionRow.at)))}


def _snooze(repair: RepairRow, until: datetime, decision: DecisionRow | None) -> SnoozeView:
    proposal = repair.proposal or {}
    faults = tuple(dict.fromkeys([*([repair.fault] if repair.fault else []), *proposal.get("faults", ())]))
    who, why = (decision.actor, decision.reason) if decision else ("", repair.outcome)
    return SnoozeView(repair=repair.id, faults=faults, until=until, actor=who, reason=why)


def _quiet(session: Session, rows: Sequence[NodeRow], now: datetime) -> dict[str, QuietView]:
    """The newest answer of each agent counts, in the boot in which it was given."""
    nodes = {node_key(row): row for row in rows}
    asked = (col(NodeRequestRow.node).in_([row.name for row in rows]), NodeRequestRow.kind == "quiesce")
    found = select(NodeRequestRow).where(*asked, NodeRequestRow.state == node_requests.DONE)
    last = {f"{row.cluster}/{row.node}": row for row in session.exec(found.order_by(col(NodeRequestRow.created_at)))}
    quiet: dict[str, QuietView] = {}
    for key, row in last.items():
        until = _quiet_until(row)
        if key in nodes and row.boot_id == nodes[key].boot_id and until is not None and until > now:
            quiet[key] = _view(session, key, row, until)
    return quiet


def _quiet_until(row: NodeRequestRow) -> datetime | None:
    seconds = row.result.get("quiet_seconds")
    if row.ended_at is None or row.result.get("let_go") is not True or not isinstance(seconds, int | float):
        return None
    most = float(row.arguments.get("seconds", 0))  # an agent's word is bounded by what it was asked
    return row.ended_at + timedelta(seconds=min(max(float(seconds), 0.0), most))


def _view(session: Session, key: str, row: NodeRequestRow, until: datetime) -> QuietView:
    """With who asked for it: that is in the audit alone."""
    asked = (AuditRow.subject == key, AuditRow.act == "quiesce", AuditRow.at == row.created_at)
    said = session.exec(select(AuditRow).where(*asked)).first()
    return QuietView(
        until=until, actor=said.actor if said else "", reason=str(said.data.get("reason", "")) if said else ""
    )
