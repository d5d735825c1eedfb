"""What forbids an act at the moment of its last look: asked by the ledger of acts, in the transaction that sends it.

A closed repair, a state that the act is not for, a freeze, a node that has left, a stop that was not delivered yet.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import and_, or_
from sqlmodel import Session, col, select

from daytwo.domain.ids import containment_id, incident_of
from daytwo.domain.repair_states import LEAVES_MARKS
from daytwo.domain.seams import Act, ActKind
from daytwo.domain.vocabulary import DecisionKind, DecisionStatus, State
from daytwo.repairs import OPENING
from daytwo.store import locks, restored
from daytwo.store.tables import DecisionRow, FreezeRow, IncidentRow, NodeRow, RepairRow

BRINGS_BACK: Final = frozenset({ActKind.UNDRAIN, ActKind.UNRESERVE})
"""Acts that no freeze stops: nothing may keep a repaired node from coming back."""
KEEPS_OFF: Final = frozenset({ActKind.RESERVE, ActKind.DRAIN})
OF_INCIDENTS: Final = KEEPS_OFF | BRINGS_BACK
"""What an incident may do to a node: keep new work off, and let it on again."""
STOPS: Final = (DecisionKind.DISMISS.value, DecisionKind.HOLD.value)


def why_not(session: Session, act: Act) -> str:
    """What forbids an act at this moment: a closed repair, a freeze, a stop that has not been delivered yet.

    Until the transaction ends no freeze is written, no decision on this repair, and the repair is not closed.
    """
    locks.hold(session, locks.Lock.FREEZES, shared=True)
    if restored.unsettled(session):
        return f"{act.node}: {restored.UNSETTLED}"
    repair = session.get(RepairRow, act.mark.repair_id, with_for_update=True)
    if not (_is_open(act, repair) if repair else _is_of_incident(session, act)):
        return f"{act.node}: {act.mark.repair_id} is not open"
    if repair is not None and not _is_timely(act, repair):
        return f"{act.node}: {act.mark.repair_id} is {repair.state}, which {act.kind} is not for"
    if act.kind in BRINGS_BACK:
        return ""
    return _left(session, act) or _frozen(session, act) or _stopped(session, act, repair)


def is_over(session: Session, act: Act) -> bool:
    """Whether what stood behind an act has ended, so that the act is never sent. Of what is not known, nobody knows."""
    repair = session.get(RepairRow, act.mark.repair_id)
    if repair is not None:
        return not _is_open(act, repair)
    incident = session.get(IncidentRow, incident_of(act.mark.repair_id))
    return incident is not None and incident.open_key is None and act.kind not in BRINGS_BACK


def is_overtaken(before: ActKind, now: ActKind) -> bool:
    """True if who now wants something else of the node must not send what was intended before: nobody wants it now.

    Marks that keep work off do no harm to an act that comes next, and are written first.
    """
    if before in KEEPS_OFF:
        return now in BRINGS_BACK
    return before is not now and not (before in BRINGS_BACK and now in BRINGS_BACK)


def _left(session: Session, act: Act) -> str:
    node = session.get(NodeRow, (act.cluster, act.node))
    gone = node is not None and node.left_at is not None
    return f"{act.node} is no longer in the definition of {act.cluster}" if gone else ""


def _frozen(session: Session, act: Act) -> str:
    scopes = ("*", act.cluster, f"{act.cluster}/{act.node}")
    standing = (col(FreezeRow.scope).in_(scopes), col(FreezeRow.thawed_at).is_(None))
    freeze = session.exec(select(FreezeRow).where(*standing)).first()
    return f"frozen by {freeze.actor}: {freeze.reason}" if freeze else ""


def _stopped(session: Session, act: Act, repair: RepairRow | None) -> str:
    """A stop that has not been delivered yet, or a dismissal whose repair is about to end."""
    taken_back = and_(
        col(DecisionRow.kind) == DecisionKind.DISMISS,
        col(DecisionRow.status) == DecisionStatus.ACCEPTED,
        col(DecisionRow.revision) == (repair.revision if repair else -1),
    )
    pending = and_(col(DecisionRow.kind).in_(STOPS), col(DecisionRow.status) == DecisionStatus.PENDING)
    its = (DecisionRow.repair_id == act.mark.repair_id, or_(pending, taken_back))
    stop = session.exec(select(DecisionRow).where(*its)).first()
    return f"{stop.kind} by {stop.actor} is being delivered" if stop else ""


def _is_open(act: Act, repair: RepairRow) -> bool:
    """Whether the repair stands behind the act. The marks of one that is over may only be lifted."""
    orphaned = act.kind in BRINGS_BACK and repair.state not in LEAVES_MARKS
    return repair.open_key is not None or orphaned


def _is_timely(act: Act, repair: RepairRow) -> bool:
    """Whether the repair is where this act belongs: a worker that wakes late must not act for a state that is over."""
    if repair.open_key is None or repair.state == OPENING or act.kind in KEEPS_OFF:
        return True
    if act.kind in BRINGS_BACK:
        return repair.state == State.REJOINING or not repair.disturbed
    return repair.state == (State.DRAINING if act.kind is ActKind.REQUEUE else State.ACTING)


def _is_of_incident(session: Session, act: Act) -> bool:
    """Whether an incident stands behind the act. The marks of one that is over may only be lifted."""
    incident = session.get(IncidentRow, incident_of(act.mark.repair_id), with_for_update=True)
    if incident is None or incident.cluster != act.cluster or act.kind not in OF_INCIDENTS:
        return False
    if act.mark.repair_id != containment_id(incident.id, act.node):
        return False
    return incident.open_key is not None or act.kind in BRINGS_BACK
