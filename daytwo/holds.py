"""A node that a person holds: no repair is opened on it, and the open one is held as long as that can be done.

The service writes the hold; the reconciler makes the repairs follow, so that one that was just being opened is held.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlmodel import Session, col, select, update

from daytwo.domain.ids import new_id
from daytwo.domain.repair_states import HELD_FROM
from daytwo.domain.vocabulary import Channel, DecisionKind, DecisionStatus, State
from daytwo.store import audit
from daytwo.store.tables import DecisionRow, NodeRow, RepairRow

OF_NODE: Final = "node-hold-"
"""How the request ids of decisions begin that a node's hold has made."""


def hold_repair(session: Session, node: NodeRow, repair: RepairRow, now: datetime) -> str | None:
    """Decide to hold the open repair of a held node; returns the new decision, `None` where there is none to make.

    Once for each revision: a person may release the repair while the node stays held.
    """
    request = f"{_prefix(node, repair)}-{repair.revision}"
    if node.held_by is None or repair.state not in HELD_FROM or _is_decided(session, request):
        return None
    return _decide(session, repair, DecisionKind.HOLD, request, actor=node.held_by, reason=node.held_reason, now=now)


def release_repair(
    session: Session, node: NodeRow, repair: RepairRow, *, actor: str, reason: str, now: datetime
) -> str | None:
    """Take back what the node's hold did to its repair, and nothing that a person did to the repair itself."""
    prefix = _prefix(node, repair)
    ours = col(DecisionRow.request_id).startswith(prefix)
    pending = update(DecisionRow).where(ours, col(DecisionRow.status) == DecisionStatus.PENDING)
    session.exec(pending.values(status=DecisionStatus.VOID, status_reason="the node was released", ended_at=now))
    # A hold that was accepted may not be written on the repair yet.
    words = select(DecisionRow).where(
        DecisionRow.repair_id == repair.id,
        col(DecisionRow.kind).in_((DecisionKind.HOLD, DecisionKind.RELEASE)),
        DecisionRow.status == DecisionStatus.ACCEPTED,
    )
    last = session.exec(words.order_by(col(DecisionRow.ended_at).desc())).first()
    can_be_held = repair.state == State.HELD or repair.state in HELD_FROM
    if not can_be_held or last is None or last.kind != DecisionKind.HOLD or not last.request_id.startswith(prefix):
        return None
    return _decide(session, repair, DecisionKind.RELEASE, f"{prefix}-released", actor=actor, reason=reason, now=now)


def is_of_node(decision: DecisionRow) -> bool:
    """True for a hold that came of somebody holding the whole node."""
    return decision.request_id.startswith(OF_NODE)


def _prefix(node: NodeRow, repair: RepairRow) -> str:
    return f"{OF_NODE}{node.held_at:%Y%m%d%H%M%S%f}-{repair.id}"


def _is_decided(session: Session, request: str) -> bool:
    return session.exec(select(DecisionRow.id).where(DecisionRow.request_id == request)).first() is not None


def _decide(
    session: Session, repair: RepairRow, kind: DecisionKind, request: str, *, actor: str, reason: str, now: datetime
) -> str:
    row = DecisionRow(
        id=new_id("d", now),
        request_id=request,
        repair_id=repair.id,
        revision=repair.revision,
        kind=kind,
        actor=actor,
        channel=Channel.CLI,
        verified=True,
        reason=reason,
        at=now,
    )
    session.add(row)
    audit.append(session, actor, kind, repair.id, data={"decision": row.id, "node": repair.node}, now=now)
    return row.id
