"""Freeze and thaw: the stop for every act that has not begun, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from daytwo.domain.errors import BadInput, NotFound, Refused
from daytwo.service.administration import check_all
from daytwo.service.decisions import Identity
from daytwo.service.models.plane import FreezeView
from daytwo.service.reads.lookup import find_cluster, find_node, node_key
from daytwo.service.reads.plane import freeze_view
from daytwo.store import audit, locks
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, ClusterRow, FreezeRow, NodeRow

EVERYTHING = "*"
LONGEST_REASON = 4000
"""Characters of the reasons of all who want a scope frozen."""
MOST_NAMED = 5


def freeze(store: Store, asker: Identity, scope: str, *, reason: str, now: datetime) -> FreezeView:
    """Stop every act in `scope` (`*`, `cluster` or `cluster/node`) that has not begun. Anybody may pull this brake.

    Where exactly this scope is frozen already, that freeze stands, and takes in who else wants it and why. Raises
    `BadInput` without a reason and `NotFound` for a scope that is not known.
    """
    _need_reason(reason, "freeze")
    with store.write() as session:
        locks.hold(session, locks.Lock.FREEZES)  # no act passes its last look while this is written
        scope = _known(session, scope)
        row = session.exec(_standing(scope)).first()
        again = row is not None
        if row is None:
            row = FreezeRow(scope=scope, reason=reason, actor=asker.actor, at=now)
        elif reason not in row.reason or asker.actor not in (row.actor, *_joined(session, row)):
            row.reason = f"{row.reason}; also {asker.actor}: {reason}"[:LONGEST_REASON]
        session.add(row)
        audit.append(session, asker.actor, "freeze", scope, data={"reason": reason}, now=now)
        session.flush()
        return freeze_view(row, again=again)


def thaw(
    store: Store, asker: Identity, scope: str, *, reason: str, owner: str, now: datetime
) -> tuple[FreezeView, ...]:
    """End the freezes of exactly this scope and have each of its nodes looked at again.

    Who froze may thaw, as long as nobody else wanted it frozen, and so may whoever administers all clusters concerned;
    else `Refused`. `NotFound` when nothing is frozen there.
    """
    _need_reason(reason, "thaw")
    with store.write() as session:
        rows = _frozen(session, scope)
        others = {actor for row in rows for actor in (row.actor, *_joined(session, row))} - {asker.actor}
        if others:
            _check_may_thaw(session, asker, scope, owner, others=sorted(others))
        for row in rows:
            row.thawed_at, row.thawed_by = now, asker.actor
        session.add_all(rows)
        _look_at_nodes_in(session, scope)
        audit.append(session, asker.actor, "thaw", scope, data={"reason": reason}, now=now)
        return tuple(freeze_view(row) for row in rows)


def _need_reason(reason: str, act: str) -> None:
    if not reason.strip():
        raise BadInput(f"reason: found nothing; to {act} needs a sentence that says why")


def _known(session: Session, scope: str) -> str:
    """The scope as acts look it up: a node may be named in more than one way."""
    if scope == EVERYTHING:
        return scope
    if "/" in scope:
        return node_key(find_node(session, scope))
    try:
        return find_cluster(session, scope).name
    except NotFound as error:
        nodes = session.exec(select(NodeRow).where(NodeRow.name == scope).limit(MOST_NAMED)).all()
        meant = "; ".join(f"daytwo freeze {node_key(node)} --reason ..." for node in nodes)
        why = "A scope is `*`, a cluster, or `cluster/node`. Nothing was done."
        raise NotFound(str(error), why=why, following=meant or "daytwo clusters list") from None


def _standing(scope: str) -> SelectOfScalar[FreezeRow]:
    found = select(FreezeRow).where(FreezeRow.scope == scope, col(FreezeRow.thawed_at).is_(None))
    return found.order_by(col(FreezeRow.id)).with_for_update()


def _joined(session: Session, row: FreezeRow) -> Sequence[str]:
    """Who wanted this freeze after it began: the audit has it."""
    asked = (AuditRow.subject == row.scope, AuditRow.act == "freeze", AuditRow.at >= row.at)
    return session.exec(select(AuditRow.actor).where(*asked)).all()


def _scopes(session: Session) -> str:
    """What is frozen, for whoever named something else."""
    found = select(FreezeRow.scope).where(col(FreezeRow.thawed_at).is_(None)).distinct()
    scopes = sorted(session.exec(found.limit(10)).all())
    return f"; frozen is {', '.join(scopes)}" if scopes else ", nor anywhere else"


def _frozen(session: Session, scope: str) -> list[FreezeRow]:
    rows = list(session.exec(_standing(scope)).all())
    if not rows:
        raise NotFound(
            f"nothing is frozen in {scope!r}{_scopes(session)}",
            why="A thaw ends the freezes of exactly one scope, and none of this one holds. Nothing was done.",
            following="daytwo freeze --list",
        )
    return rows


def _check_may_thaw(session: Session, asker: Identity, scope: str, owner: str, *, others: Sequence[str]) -> None:
    cluster = scope.partition("/")[0]
    found = select(ClusterRow)
    rows = session.exec(found if scope == EVERYTHING else found.where(ClusterRow.name == cluster)).all()
    try:
        check_all(asker, rows, owner)
    except Refused as error:
        by = f"{scope} is frozen by {', '.join(others[:MOST_NAMED])}"
        raise Refused(f"{by}: {error}", following="daytwo freeze --list, and ask one of them") from None


def _look_at_nodes_in(session: Session, scope: str) -> None:
    cluster, _, node = scope.partition("/")
    clusters = session.exec(select(ClusterRow.name)).all() if scope == EVERYTHING else [cluster]
    for name in sorted(clusters):
        for row in locks.lock_nodes(session, name, [node] if node else None).values():
            row.due += 1
