"""Is the plane well? Everything that `daytwo status` tells, from rows alone: nobody is asked anything for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from daytwo.domain.vocabulary import DecisionStatus, FindingStatus, NodeState, State
from daytwo.service.models.plane import FreezeView
from daytwo.service.models.status import ActsView, IncidentView, LoopView, PartView, Status, WaitingView
from daytwo.service.reads.lookup import silent_after
from daytwo.service.reads.paging import Filter, view
from daytwo.service.reads.parts import parts_of
from daytwo.service.reads.plane import freezes
from daytwo.store.tables import (
    ClusterRow,
    DecisionRow,
    FindingRow,
    IncidentRow,
    IntentRow,
    LeaseRow,
    NodeRow,
    RepairRow,
)

MOST_NAMED: Final = 20
"""Repairs that are named one by one; how many there are is told by state."""
FOR_PEOPLE: Final = (State.NEEDS_HELP, State.PROPOSED, State.HELD)
STUCK_AFTER: Final = timedelta(minutes=5)
"""A loop whose step has not ended for so long does not do its work, though its lease is renewed."""
SILENT: Final = "agent-silent"


def status(session: Session, now: datetime, *, started: datetime) -> Status:
    """The installation in one answer; `healthy` only when nodes, loops, freezes and parts all say so.

    `started` is when the service was, and with it the plane: a part that has not been heard since may be starting too.
    """
    nodes = dict(session.exec(select(NodeRow.state, func.count()).group_by(col(NodeRow.state))).all())
    is_open = col(RepairRow.open_key).is_not(None)
    repairs = session.exec(select(RepairRow.state, func.count()).where(is_open).group_by(col(RepairRow.state))).all()
    firing = select(func.count()).select_from(FindingRow).where(FindingRow.status == FindingStatus.FIRING.value)
    pending = select(func.count()).select_from(DecisionRow).where(DecisionRow.status == DecisionStatus.PENDING.value)
    frozen, loops = _active_freezes(session), _loops(session, now)
    parts = parts_of(session, loops, now, started)
    away = tuple(part.part for part in parts if part.state == "away")
    starting = any(part.state == "starting" for part in parts)
    return Status(
        at=now,
        healthy=_is_healthy(nodes, loops) and not frozen and not away and not starting,
        nodes=nodes,
        repairs=dict(repairs),
        firing=session.exec(firing).one(),
        decisions_pending=session.exec(pending).one(),
        freezes=frozen,
        loops=loops,
        away=away,
        parts=parts,
        silent_agents=session.exec(firing.where(FindingRow.fault == SILENT, FindingRow.node != "")).one(),
        silent_after_seconds=tuple(sorted({silent_after(row) for row in session.exec(select(ClusterRow))})),
        incidents=_incidents(session),
        waiting_for_people=_waiting(session, for_people=True),
        waiting=_waiting(session, for_people=False),
        acts=_acts(session),
    )


def store_away(since: datetime, why: str, now: datetime) -> Status:
    """All that can be told while the store does not answer."""
    part = PartView(part="store", state="away", since=since, why=why)
    return Status(
        at=now,
        healthy=False,
        nodes={},
        repairs={},
        firing=None,
        decisions_pending=None,
        freezes=(),
        loops=(),
        away=("store",),
        parts=(part,),
    )


def _active_freezes(session: Session) -> tuple[FreezeView, ...]:
    return freezes(session, Filter(active_only=True)).items


def _loops(session: Session, now: datetime) -> tuple[LoopView, ...]:
    rows = session.exec(select(LeaseRow).order_by(col(LeaseRow.name))).all()
    return tuple(view(LoopView, row, alive=_is_alive(row, now)) for row in rows)


def _is_alive(row: LeaseRow, now: datetime) -> bool:
    return row.expires_at > now and (row.stepped_at is None or now - row.stepped_at < STUCK_AFTER)


def _is_healthy(nodes: dict[str, int], loops: Sequence[LoopView]) -> bool:
    # No node and no loop is nothing known, which is not healthy.
    return set(nodes) == {NodeState.HEALTHY.value} and bool(loops) and all(loop.alive for loop in loops)


def _incidents(session: Session) -> tuple[IncidentView, ...]:
    goes_on = select(IncidentRow).where(col(IncidentRow.open_key).is_not(None)).order_by(col(IncidentRow.first_at))
    return tuple(view(IncidentView, row) for row in session.exec(goes_on.limit(MOST_NAMED)))


def _waiting(session: Session, *, for_people: bool) -> tuple[WaitingView, ...]:
    """Those that wait longest; what needs help comes before what is only proposed."""
    where: list[ColumnElement[bool]] = [col(RepairRow.open_key).is_not(None)]
    if for_people:
        where.append(col(RepairRow.state).in_(FOR_PEOPLE))
    else:
        where += [col(RepairRow.state).not_in(FOR_PEOPLE), col(RepairRow.waiting_for) != ""]
    helpless = (col(RepairRow.state) == State.NEEDS_HELP).desc()
    found = select(RepairRow).where(*where).order_by(helpless, col(RepairRow.state_since)).limit(MOST_NAMED)
    return tuple(
        view(WaitingView, row, since=row.state_since, why=row.attention or row.waiting_for or row.why)
        for row in session.exec(found)
    )


def _acts(session: Session) -> ActsView:
    unresolved = col(IntentRow.open_node).is_not(None)
    query = select(IntentRow.state, func.count(), func.min(IntentRow.updated_at)).where(unresolved)
    rows = session.exec(query.group_by(col(IntentRow.state))).all()
    return ActsView(
        by_state={state: count for state, count, _ in rows}, oldest_at=min((r[2] for r in rows), default=None)
    )
