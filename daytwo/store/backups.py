"""Copies of the store while it is used, and a store put back from one. `workers.backup` calls it.

SQLite: a database file, copied page by page beside its writers. PostgreSQL: what `pg_dump --format=custom` writes, of
one snapshot. A restore is whole or not at all: a store in which it was not finished is refused by every process.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlmodel import Session, col, select

from daytwo.domain.errors import BadInput, Refused
from daytwo.store import audit, postgresql_files, restored
from daytwo.store.engine import Store
from daytwo.store.tables import LeaseRow


@dataclass(frozen=True, slots=True)
class Backup:
    """What a file holds: when it was taken, and the audit chain that it ends with."""

    file: Path
    at: datetime
    count: int
    head: str


def take(store: Store, file: Path, *, actor: str, now: datetime) -> Backup:
    """Copy the store into a new file, whoever writes meanwhile. Raises `BadInput` for a file that is there already.

    The copy knows when it was taken: that is a row of the audit, in the store too.
    """
    if file.exists():
        raise BadInput(f"FILE: found {str(file)!r}, which exists; allowed is the name of a new file")
    with store.write() as session:
        audit.append(session, actor, restored.BACKED_UP, restored.SUBJECT, data={"file": file.name}, now=now)
    whole = _whole(store)
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.parent) as folder:
        part = Path(folder) / file.name
        _copy_out(store, part)
        part.chmod(0o600)
        _to_disk(part)
        part.rename(file)
    return Backup(file, now, whole.count, whole.head)


def put_back(url: str, file: Path, *, aside: Path, actor: str, now: datetime) -> Backup:
    """Make the store at `url` what `file` holds, brought to the newest tables; the store that was there goes `aside`.

    Raises `BadInput` for a file that is no backup, `TooNew` for one of a newer daytwo, and `Refused` while the store is
    in use or where the audit chain in the file is broken.
    """
    store = Store(url)
    try:
        replaced = _replaced(store, now)
        is_sqlite = store.engine.dialect.name == "sqlite"
        put = _put_back_sqlite if is_sqlite else _put_back_postgresql
        return put(store, file, aside if replaced else None, _Ending(actor, replaced, now))
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class _Ending:
    """What a restore ends with, once the rows are there."""

    actor: str
    replaced: audit.AuditReport | None
    now: datetime

    def write(self, session: Session, file: Path) -> Backup:
        report = audit.verify(session)
        if not report.ok:
            raise Refused(f"FILE: found {str(file)!r}, whose audit chain is broken ({report.problem}); use another one")
        at = restored.taken_at(session) or self.now
        restored.unsettle(session, self.actor, taken=at, replaced=self.replaced, now=self.now)
        return Backup(file, at, report.count, report.head)


def _replaced(store: Store, now: datetime) -> audit.AuditReport | None:
    """The audit chain of the store that is there; `None` where there is none. Raises `Refused` while it is in use."""
    if not store.has_tables():
        return None
    with store.read() as session:
        # By name, for the tables may be those of any version.
        held = select(LeaseRow.name, LeaseRow.holder, LeaseRow.expires_at).where(col(LeaseRow.expires_at) > now)
        lease = session.exec(held).first()
        if lease is not None:
            raise Refused(f"the controller {lease[1]} runs loop {lease[0]!r}; stop every process of daytwo first")
        return audit.verify(session)


def _copy_out(store: Store, part: Path) -> None:
    if store.engine.dialect.name != "sqlite":
        postgresql_files.dump(store, part)
        return
    with closing(sqlite3.connect(f"file:{store.engine.url.database}?mode=ro", uri=True)) as source:
        _copy(source, part)


def _copy(source: sqlite3.Connection, part: Path) -> None:
    with closing(sqlite3.connect(part)) as copy:
        source.backup(copy)  # in one step: it reads one moment, and keeps no writer waiting
        found = copy.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise Refused(f"the database is damaged: {found}")
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")


def _whole(store: Store) -> audit.AuditReport:
    with store.read() as session:
        report = audit.verify(session)
    if not report.ok:
        raise Refused(f"the audit chain is broken at row {report.bad_number} ({report.problem}): daytwo audit verify")
    return report


def _put_back_sqlite(store: Store, file: Path, aside: Path | None, ending: _Ending) -> Backup:
    """Everything is made ready in a copy; then the live database becomes that copy in one step."""
    live = Path(store.engine.url.database or "")
    if aside is not None:
        _copy_out(store, aside)
        aside.chmod(0o600)
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=live.parent) as folder:
        ready = Path(folder) / "daytwo.db"
        _copy_file(file, ready)
        found = _made_ready(ready, file, ending)
        with closing(sqlite3.connect(ready)) as source, closing(sqlite3.connect(live)) as target:
            source.backup(target)
    live.chmod(0o600)
    return found


def _copy_file(file: Path, ready: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as source:
            _copy(source, ready)
    except sqlite3.DatabaseError as error:
        raise BadInput(f"FILE: found {str(file)!r}, which is no backup of a SQLite store ({error})") from error


def _made_ready(ready: Path, file: Path, ending: _Ending) -> Backup:
    copy = Store(f"sqlite:///{ready}")
    try:
        if not copy.has_tables():
            raise BadInput(f"FILE: found {str(file)!r}, a database that is no store of daytwo")
        copy.migrate()
        with copy.write() as session:
            return ending.write(session, file)
    finally:
        copy.close()


def _put_back_postgresql(store: Store, file: Path, aside: Path | None, ending: _Ending) -> Backup:
    """The rows go in with a mark that keeps every process away; the mark goes with the end of the restore."""
    postgresql_files.refuse_while_used(store)
    revision = postgresql_files.revision_in(file)
    store.check_revision(revision)
    if aside is not None:
        postgresql_files.dump(store, aside)
        aside.chmod(0o600)
    postgresql_files.load(store, file)
    store.migrate(restoring=True)
    with store.write() as session:
        found = ending.write(session, file)
        postgresql_files.lift_mark(session)
    return found


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
