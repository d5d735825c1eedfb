"""The audit chain: who did what, in rows that each carry the hash of the row before.

Whoever changes something appends inside the same transaction; the rows are chained when it commits. `daytwo audit
verify` walks the chain. The head and the count stand in a table of their own, because a chain whose last rows were
removed is still a perfect chain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import event
from sqlmodel import Session, col, select

from daytwo.store import locks
from daytwo.store.tables import AuditHeadRow, AuditRow

PAGE = 1000
ENTRIES = "audit entries"
"""Where a session keeps what was appended until it commits."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdict on the chain. `bad_number` is the first row that does not fit; `count` and `head` are as recorded."""

    ok: bool
    count: int
    head: str
    bad_number: int | None = None
    problem: str = ""


def append(
    session: Session, actor: str, act: str, subject: str, *, data: dict[str, Any] | None = None, now: datetime
) -> None:
    """Add one row at the end of the caller's write transaction. `data` must be plain JSON, else `TypeError`."""
    entry = AuditRow(
        number=0, at=now, actor=actor, act=act, subject=subject, data=_plain(data or {}), previous="", hash=""
    )
    if ENTRIES not in session.info:
        session.info[ENTRIES] = []
        event.listen(session, "before_commit", _seal)
        event.listen(session, "after_rollback", _forget)
    session.info[ENTRIES].append(entry)


def _seal(session: Session) -> None:
    """Chain what was appended, as the last thing before the commit.

    All writers meet here. Whoever has the end of the chain waits for nobody any more: no two can wait for each other.
    """
    if not session.info[ENTRIES]:
        return
    session.flush()
    locks.hold(session, locks.Lock.AUDIT)
    head = session.get(AuditHeadRow, 1, populate_existing=True) or AuditHeadRow()
    for row in session.info[ENTRIES]:
        row.number, row.previous = head.count + 1, head.head
        row.hash = digest(row)
        head.count, head.head = row.number, row.hash
    session.add_all([*session.info[ENTRIES], head])
    _forget(session)


def _forget(session: Session) -> None:
    session.info[ENTRIES] = []


def digest(row: AuditRow) -> str:
    """SHA-256 over the canonical JSON of a row, its number and the hash before it, in hexadecimal."""
    content = {
        "number": row.number,
        "at": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": row.actor,
        "act": row.act,
        "subject": row.subject,
        "data": row.data,
        "previous": row.previous,
    }
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def verify(session: Session) -> AuditReport:
    """Walk the chain and name the first row that was changed, removed or moved, or the tail that is missing."""
    # A removed tail is told by the head, so both must come from one snapshot: the caller's read transaction.
    head = session.get(AuditHeadRow, 1) or AuditHeadRow()
    query = select(AuditRow).order_by(col(AuditRow.number)).execution_options(yield_per=PAGE)
    with session.exec(query) as rows:  # a walk that ends early leaves no cursor in the database
        count, last, problem = _walk(rows)
    bad, problem = (count + 1, problem) if problem else _against_head(count, last, head)
    return AuditReport(not problem, head.count, head.head, bad if problem else None, problem)


def _against_head(count: int, last: str, head: AuditHeadRow) -> tuple[int, str]:
    if count < head.count:
        return count + 1, f"row {count + 1} is missing, and all up to {head.count}"
    if count > head.count:
        return head.count + 1, f"row {head.count + 1} stands past the recorded end of the chain"
    return count, "" if last == head.head else f"row {count} is not the recorded head of the chain"


def _walk(rows: Iterable[AuditRow]) -> tuple[int, str, str]:
    count, previous = 0, ""
    for row in rows:
        problem = _misfit(row, count + 1, previous)
        if problem:
            return count, previous, problem
        count, previous = row.number, row.hash
    return count, previous, ""


def _misfit(row: AuditRow, number: int, previous: str) -> str:
    if row.number != number:
        return f"row {number} is missing"
    if row.previous != previous:
        return f"row {number} does not follow the row before it: moved, inserted or rewritten"
    return "" if row.hash == digest(row) else f"row {number} was changed"


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    # As it will be read back, so that the hash of the row written is the hash of the row read.
    plain: dict[str, Any] = json.loads(_canonical(data))
    return plain


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
