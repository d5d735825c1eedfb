"""The mailbox: questions to a node's agent and what became of them. Asked by activities, carried by the gateway.

    open → offered → accepted → done | failed          withdrawn: nobody wants it any more; lapsed: not answered in time

Each step is a compare-and-set. A request lives `ttl_seconds` by the server's clock until it is accepted, and as long
again until it is answered. Ids come from the asker, so that asking again asks nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlmodel import Session, col, select, update
from sqlmodel.sql.expression import SelectOfScalar

from daytwo import evidence
from daytwo.domain.errors import BadInput, NotFound
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRequestRow, NodeRow
from daytwo.wire import Answer, Asked

OPEN: Final = "open"
OFFERED: Final = "offered"
ACCEPTED: Final = "accepted"
DONE: Final = "done"
FAILED: Final = "failed"
WITHDRAWN: Final = "withdrawn"
LAPSED: Final = "lapsed"

WAITING: Final = (OPEN, OFFERED)
UNANSWERED: Final = (OPEN, OFFERED, ACCEPTED)
TOLD_FOR: Final = timedelta(minutes=10)
"""How long an agent is told that a request it may hold has ended."""


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A question to the agent of one node. `daytwo.wire.Asked` has the kinds."""

    id: str
    cluster: str
    node: str
    kind: str
    ttl_seconds: float
    repair_id: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def ask(store: Store, request: NodeRequest, *, now: datetime) -> NodeRequestRow:
    """Put the question into the mailbox, once, and return its row. Raises `BadInput` if the id asks another thing."""

    def put(session: Session) -> NodeRequestRow:
        row = session.get(NodeRequestRow, request.id)
        if row is None:
            row = _row(request, now)
            session.add(row)
            session.flush()
        elif not _is_same(row, request):
            raise BadInput(
                f"id: found {request.id!r}, which asks {row.kind} of {row.node}; allowed is an id of its own"
            )
        return row

    return store.change(put)


def answer_for(store: Store, request_id: str, *, now: datetime) -> NodeRequestRow:
    """Return the request as it stands now; past its time it has lapsed. Raises `NotFound`.

    `lapsed` with no `accepted_at` is an agent that cannot be reached: a branch of the repair, not an error.
    """
    with store.read() as session:
        row = _get(session, request_id)
    if row.state not in UNANSWERED or row.deadline > now:
        return row
    with store.write() as session:
        _lapse(session, row.cluster, row.node, now)
        return _get(session, request_id)


def withdraw(store: Store, request_id: str, *, now: datetime) -> NodeRequestRow:
    """Nobody wants the answer any more. A request that has ended stays as it ended. Raises `NotFound`."""
    with store.write() as session:
        _move(session, _get(session, request_id), UNANSWERED, {"state": WITHDRAWN, "ended_at": now})
        return _get(session, request_id)


def offer(session: Session, node: NodeRow, *, now: datetime) -> list[Asked]:
    """Return what the agent is to be asked: all that it has not accepted yet. For the gateway's pulse."""
    _lapse(session, node.cluster, node.name, now)
    rows = _locked(session, node.cluster, node.name, WAITING)
    for row in rows:
        _move(session, row, (OPEN,), {"state": OFFERED, "offered_at": now})
    return [_asked(row, now) for row in rows]


def is_asked(session: Session, node: NodeRow) -> bool:
    """True while the node owes an answer: its agent should come back soon."""
    return bool(_rows(session, node.cluster, node.name, UNANSWERED))


def ended(session: Session, node: NodeRow, *, now: datetime) -> list[str]:
    """Return the ids of requests that the agent may still hold and that nobody waits for any more."""
    rows = _rows(session, node.cluster, node.name, (WITHDRAWN, LAPSED))
    return [row.id for row in rows if row.offered_at and row.ended_at and row.ended_at > now - TOLD_FOR]


def answer(session: Session, node: NodeRow, answers: Sequence[Answer], *, now: datetime) -> list[str]:
    """Take the agent's answers; return the ids of those that were refused.

    Refused are answers to what was never offered to this node, to what has ended otherwise, and of another boot than
    the node is in. An answer that comes again is taken once.
    """
    _lapse(session, node.cluster, node.name, now)
    return [each["id"] for each in answers if each["boot_id"] != node.boot_id or not _take(session, node, each, now)]


def booted(session: Session, node: NodeRow, *, now: datetime) -> None:
    """The node is in another boot: what an earlier one accepted fails, because nobody is left to answer it."""
    for row in _locked(session, node.cluster, node.name, (ACCEPTED,)):
        if row.boot_id != node.boot_id:
            error = "the node booted again before it answered"
            _move(session, row, (ACCEPTED,), {"state": FAILED, "ended_at": now, "error": error})


def _row(request: NodeRequest, now: datetime) -> NodeRequestRow:
    return NodeRequestRow(
        id=request.id,
        cluster=request.cluster,
        node=request.node,
        repair_id=request.repair_id,
        kind=request.kind,
        arguments=dict(request.arguments),
        created_at=now,
        deadline=now + timedelta(seconds=request.ttl_seconds),
    )


def _is_same(row: NodeRequestRow, request: NodeRequest) -> bool:
    return (row.cluster, row.node, row.kind, row.arguments) == (
        request.cluster,
        request.node,
        request.kind,
        request.arguments,
    )


def _get(session: Session, request_id: str) -> NodeRequestRow:
    row = session.get(NodeRequestRow, request_id, populate_existing=True)
    if row is None:
        raise NotFound(f"there is no request {request_id!r} to a node")
    return row


def _rows(session: Session, cluster: str, node: str, states: Sequence[str]) -> list[NodeRequestRow]:
    return list(session.exec(_query(cluster, node, states).execution_options(populate_existing=True)))


def _locked(session: Session, cluster: str, node: str, states: Sequence[str]) -> list[NodeRequestRow]:
    """Like `_rows`, and nobody moves them meanwhile: what is read of a row decides where it goes."""
    query = _query(cluster, node, states).with_for_update()
    return list(session.exec(query.execution_options(populate_existing=True)))


def _query(cluster: str, node: str, states: Sequence[str]) -> SelectOfScalar[NodeRequestRow]:
    return (
        select(NodeRequestRow)
        .where(NodeRequestRow.cluster == cluster, NodeRequestRow.node == node, col(NodeRequestRow.state).in_(states))
        .order_by(col(NodeRequestRow.created_at), col(NodeRequestRow.id))
    )


def _move(session: Session, row: NodeRequestRow, states: Sequence[str], values: dict[str, Any]) -> bool:
    moved = session.exec(
        update(NodeRequestRow)
        .where(col(NodeRequestRow.id) == row.id, col(NodeRequestRow.state).in_(states))
        .values(**values)
    )
    return moved.rowcount == 1


def _lapse(session: Session, cluster: str, node: str, now: datetime) -> None:
    for row in _locked(session, cluster, node, UNANSWERED):
        if row.deadline <= now:
            error = "not answered in time" if row.state == ACCEPTED else "not accepted in time"
            _move(session, row, UNANSWERED, {"state": LAPSED, "ended_at": now, "error": error})


def _asked(row: NodeRequestRow, now: datetime) -> Asked:
    return {
        "id": row.id,
        "kind": row.kind,
        "ttl_seconds": (row.deadline - now).total_seconds(),
        "arguments": row.arguments,
    }


def _take(session: Session, node: NodeRow, given: Answer, now: datetime) -> bool:
    row = session.get(NodeRequestRow, given["id"], with_for_update=True)
    if row is None or (row.cluster, row.node) != (node.cluster, node.name) or row.offered_at is None:
        return False
    if row.boot_id is not None and row.boot_id != given["boot_id"]:
        return False
    if given["state"] == ACCEPTED:
        return row.state in (ACCEPTED, DONE, FAILED) or _accept(session, row, given, now)
    return row.state == given["state"] or _end(session, row, given, now)


def _accept(session: Session, row: NodeRequestRow, given: Answer, now: datetime) -> bool:
    deadline = now + (row.deadline - row.created_at)
    values = {"state": ACCEPTED, "accepted_at": now, "boot_id": given["boot_id"], "deadline": deadline}
    return _move(session, row, WAITING, values)


def _end(session: Session, row: NodeRequestRow, given: Answer, now: datetime) -> bool:
    if row.state not in UNANSWERED:
        return False
    result = given.get("result", {})
    if row.kind == evidence.KIND and given["state"] == DONE:
        result = evidence.keep(session, row, result, now)
    values: dict[str, Any] = {
        "state": given["state"],
        "ended_at": now,
        "accepted_at": row.accepted_at or now,
        "boot_id": given["boot_id"],
        "result": result,
        "error": given.get("error", ""),
    }
    return _move(session, row, UNANSWERED, values)
