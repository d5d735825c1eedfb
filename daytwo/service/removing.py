"""Removes a cluster: its nodes are no longer looked after. What was decided and done in it stays on record."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from pydantic import Field
from sqlmodel import Session, col, delete, select, update

from daytwo.domain.errors import BadInput, Refused
from daytwo.domain.repair_states import LEAVES_MARKS
from daytwo.domain.vocabulary import Frozen
from daytwo.service import reads
from daytwo.service.administration import check_all
from daytwo.service.decisions import Identity
from daytwo.service.models.acts import ClusterRemoved
from daytwo.store import audit, locks
from daytwo.store.engine import Store
from daytwo.store.tables import (
    BmcRefusalRow,
    FindingRow,
    FreezeRow,
    IncidentRow,
    IntentRow,
    NodeRequestRow,
    NodeRow,
    NodeTokenRow,
    RepairRow,
)

GOES: Final[tuple[type[Any], ...]] = (FindingRow, NodeRequestRow, NodeTokenRow, BmcRefusalRow, NodeRow)
"""What is about a node that nobody looks after. Observations and transitions are many: the controller prunes them."""
NAMED: Final = 5
"""Of those that are in the way."""


class RemovalRequest(Frozen):
    """Which cluster, and why. `scheduler_gone`: it is never read again, so what is marked in it concerns nobody."""

    cluster: str
    reason: str = Field(default="", max_length=2000)
    scheduler_gone: bool = False


def remove(store: Store, asker: Identity, request: RemovalRequest, *, owner: str, now: datetime) -> ClusterRemoved:
    """Remove a cluster and its nodes. Raises `NotFound`, `BadInput` without a reason, and `Refused`.

    Refused while anything of it is under way, while marks of ours are on a node, and while that cannot be told.
    """
    if not request.reason.strip():
        raise BadInput("reason: found nothing; to remove a cluster needs a sentence that says why")
    with store.write() as session:
        locks.hold(session, locks.Lock.DECLARATIONS)
        row = reads.find_cluster(session, request.cluster)
        check_all(asker, [row], owner)
        nodes = locks.lock_nodes(session, row.name)
        for problem in (*_under_way(session, row.name), *([] if request.scheduler_gone else _marked(session, nodes))):
            raise Refused(f"cluster {row.name}: {problem}")
        for table in GOES:
            session.exec(delete(table).where(table.cluster == row.name))
        _thaw(session, row.name, asker, now)
        session.delete(row)
        told = {"nodes": len(nodes), "reason": request.reason}
        audit.append(session, asker.actor, "remove-cluster", row.name, data=told, now=now)
        return ClusterRemoved(cluster=row.name, nodes=len(nodes))


def _under_way(session: Session, cluster: str) -> list[str]:
    """What is not over yet; the last look before an act waits for this transaction or comes before it."""
    locks.hold(session, locks.Lock.FREEZES)
    mine = (RepairRow.cluster == cluster, col(RepairRow.open_key).is_not(None))
    repairs = session.exec(select(RepairRow.id).where(*mine).with_for_update()).all()
    unresolved = (IntentRow.cluster == cluster, col(IntentRow.open_node).is_not(None))
    intents = session.exec(select(IntentRow.node).where(*unresolved)).all()
    going_on = (IncidentRow.cluster == cluster, col(IncidentRow.open_key).is_not(None))
    incidents = session.exec(select(IncidentRow.id).where(*going_on)).all()
    return [
        *([f"{_some(repairs)} open; end them: daytwo repairs list --cluster {cluster}"] if repairs else []),
        *([f"{_some(incidents)} an incident that goes on; it ends by itself"] if incidents else []),
        *([f"{_some(intents)} acted on; try again when that is resolved"] if intents else []),
    ]


def _marked(session: Session, nodes: dict[str, NodeRow]) -> list[str]:
    unread = sorted(name for name, row in nodes.items() if row.facts is None)
    if unread:
        return [f"{_some(unread)} not read by its scheduler, so marks of ours may be there; --scheduler-gone if it is"]
    marks = {name: (row.facts or {}).get("mark_repair_id") for name, row in nodes.items()}
    owners = {mark for mark in marks.values() if mark}
    left = col(RepairRow.id).in_(owners), col(RepairRow.state).in_(LEAVES_MARKS)
    given = set(session.exec(select(RepairRow.id).where(*left)))
    ours = sorted(f"{name} ({mark})" for name, mark in marks.items() if mark and mark not in given)
    return [f"{_some(ours)} marked by us; the marks would stay for ever"] if ours else []


def _some(names: Any) -> str:
    named = ", ".join(names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{named}{more} {'is' if len(names) == 1 else 'are'}"


def _thaw(session: Session, cluster: str, asker: Identity, now: datetime) -> None:
    scope = (col(FreezeRow.scope) == cluster) | col(FreezeRow.scope).startswith(f"{cluster}/", autoescape=True)
    values = {"thawed_at": now, "thawed_by": asker.actor}
    session.exec(update(FreezeRow).where(scope, col(FreezeRow.thawed_at).is_(None)).values(values))
