"""What a database's refusal means, as an error of ours: whether the same call may succeed later. `Store` calls it."""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from daytwo.domain.errors import BadInput, DaytwoError, TryAgain, Unreachable

COLLIDED: Final = frozenset({"40001", "40P01"})
"""PostgreSQL's codes: could not serialise, and deadlock. The transaction is undone; the same one may succeed now."""
TAKEN: Final = "23505"
"""PostgreSQL's code: the row is there already. What was not there when looked for may be written meanwhile."""
WAITED: Final = frozenset({"55P03", "57014"})
"""PostgreSQL's codes: a lock did not come in time, and a statement did not end in time."""
AWAY: Final = ("08", "53", "57P", "58")
"""How codes begin that say: connection lost, resources used up, shut down, its system failed."""
BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
SICK: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


class Collision(TryAgain):
    """Two transactions were in each other's way; this one was undone."""


def translated(error: SQLAlchemyError, store: str) -> DaytwoError | None:
    """Return what to raise for an error of the database; `None` where it is a bug, or the caller's to judge.

    `store` names the database, without secrets.
    """
    if isinstance(error, PoolTimeout):
        return TryAgain(f"store {store}: all connections of this process are in use")
    if not isinstance(error, DBAPIError):
        return None
    if isinstance(error, DataError):
        return BadInput(f"text or number: found what the store cannot keep ({_first_line(error)})")
    return _of_sqlite(error, store) if isinstance(error.orig, sqlite3.Error) else _of_postgresql(error, store)


def is_taken(error: Exception) -> bool:
    """True for a row that another transaction has written since it was looked for."""
    return isinstance(error, IntegrityError) and _code(error) == TAKEN


def _of_postgresql(error: DBAPIError, store: str) -> DaytwoError | None:
    code = _code(error)
    if code in COLLIDED:
        return Collision(f"store {store}: two writers were in each other's way ({_first_line(error)})")
    if code in WAITED:
        return TryAgain(f"store {store}: another writer was in the way for too long ({_first_line(error)})")
    if error.connection_invalidated or code.startswith(AWAY) or _never_connected(error):
        return Unreachable(f"store {store} does not answer: {_first_line(error)}")
    return None


def _never_connected(error: DBAPIError) -> bool:
    return error.statement is None and not _code(error)


def _of_sqlite(error: DBAPIError, store: str) -> DaytwoError | None:
    # The lower byte is the code, what is above it says where in the file system.
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if code in BUSY:
        return TryAgain(f"store {store}: another writer was in the way for too long")
    if code in SICK:
        return Unreachable(f"store {store} does not answer: {_first_line(error)}")
    return None


def _code(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__
