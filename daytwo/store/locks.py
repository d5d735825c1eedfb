"""What only one transaction at a time may do, and in which order locks are taken: then two never wait for each other.

    lease → what is locked here, but the audit → clusters → repairs → nodes → all other rows → the audit's end

SQLite's writers are alone anyway. On PostgreSQL each write sees what was committed before each of its statements, so
that whoever reads in order to write locks what it reads first. Called inside write transactions.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from enum import IntEnum
from typing import Final

from sqlalchemy import Connection, text
from sqlmodel import Session, col, select

from daytwo.store.tables import NodeRow

_SPACE: Final = 0x64617932
"""Ours among the advisory locks of a database that others may use as well."""


class Lock(IntEnum):
    """What has no row of its own to be locked."""

    MIGRATIONS = 1
    AUDIT = 2
    """The end of the audit chain. Taken last, when the transaction commits."""
    FREEZES = 3
    """Exclusively by whoever writes a freeze; shared by the last looks before acts."""
    DECLARATIONS = 4
    """That a node's name says which node it is holds for all clusters together."""
    RIGHTS = 5
    """A cluster's budget: counting who is out, and being one of them."""
    WHOLE_CLUSTER = 6
    """Findings that are about a cluster and not about a node."""


def hold(session: Session, lock: Lock, scope: str = "", *, shared: bool = False) -> None:
    """Take a lock until the transaction ends; wait for whoever has it. `scope` divides it, as by cluster."""
    hold_on(session.connection(), lock, scope, shared=shared)


def hold_on(connection: Connection, lock: Lock, scope: str = "", *, shared: bool = False) -> None:
    """Like `hold`, for a transaction without a session."""
    if connection.dialect.name != "postgresql":
        return
    take = text(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(:space, :key)")
    connection.execute(take, {"space": _SPACE, "key": _key(lock, scope)})


def lock_nodes(session: Session, cluster: str, names: Collection[str] | None = None) -> dict[str, NodeRow]:
    """Return nodes of a cluster by name, all or those named, locked in one order, as they are now."""
    session.flush()  # the rows are read again, and must not lose what was changed in them
    query = select(NodeRow).where(NodeRow.cluster == cluster).order_by(col(NodeRow.name)).with_for_update()
    if names is not None:
        query = query.where(col(NodeRow.name).in_(names))
    rows = session.exec(query.execution_options(populate_existing=True))
    return {row.name: row for row in rows}


def _key(lock: Lock, scope: str) -> int:
    # Two scopes with one number only wait for each other. PostgreSQL's is signed.
    return zlib.crc32(f"{lock.value} {scope}".encode()) - 2**31
