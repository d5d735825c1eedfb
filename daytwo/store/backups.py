"""Copies of the store while it is used, and a store put back from one. `workers.backup` calls it.

SQLite: a database file, copied page by page beside its writers. PostgreSQL: what `pg_dump --format=custom` writes, of
one snapshot. A restore is whole or not at all: a store in which it was not finished is refused by every process.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from sqlalchemy.exc import DatabaseError as SqlError
from sqlmodel import Session, col, select

from daytwo.domain.errors import BadInput, DaytwoError, Failed, Refused, TooNew, Unreachable
from daytwo.store import audit, postgresql_files, restored
from daytwo.store.engine import Store
from daytwo.store.tables import LeaseRow

BESIDE: Final = ("", "-wal", "-shm")
"""What SQLite makes of a database, by the end of its name."""


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
    with _written(file), tempfile.TemporaryDirectory(prefix=".backup-", dir=file.parent) as folder:
        part = Path(folder) / file.name
        _copy_out(store, part)
        part.chmod(0o600)
        _to_disk(part)
        part.rename(file)
    return Backup(file, now, whole.count, whole.head)


def put_back(url: str, file: Path, *, aside: Path, actor: str, now: datetime) -> Backup:
    """Make the store at `url` what `file` holds, brought to the newest tables; the store that was there goes `aside`.

    Raises `BadInput` for a file that is no backup, `TooNew` for one of a newer daytwo, `Refused` while the store is in
    use or where the audit chain in the file is broken, and `Failed` where there is no room. Whatever it raises, the
    store is what it was, and nothing is left beside it.
    """
    _refuse_unreadable(file)
    store = Store(url)
    if store.engine.dialect.name != "sqlite":
        with closing(store):
            return _put_back_postgresql(store, file, aside, _Ending(actor, _replaced(store, now), now))
    live = Path(store.engine.url.database or "")
    with _removed_unless_there(live), _written(live), closing(store):
        return _put_back_sqlite(store, file, aside, _Ending(actor, _replaced_in_a_file(store, now), now))


def _refuse_unreadable(file: Path) -> None:
    """Raise `BadInput` that says which file cannot be read, and why: what reads it later says less."""
    allowed = "allowed is a file that `daytwo backup` wrote"
    try:
        with file.open("rb") as opened:
            opened.read(1)
    except FileNotFoundError:
        raise BadInput(f"FILE: found {str(file)!r}, which does not exist; {allowed}") from None
    except OSError as error:
        raise BadInput(f"FILE: found {str(file)!r}, which cannot be read ({error.strerror}); {allowed}") from None


@contextmanager
def _written(file: Path) -> Iterator[None]:
    """Say of what goes wrong while something is written to the folder of `file` which folder it is. Raises `Failed`."""
    try:
        yield
    except OSError as error:
        raise Failed(f"{error.filename or file.parent}: {error.strerror}; nothing was changed") from error
    except sqlite3.Error as error:
        raise Failed(f"{file}: {error}; nothing was changed") from error


@contextmanager
def _removed_unless_there(live: Path) -> Iterator[None]:
    """Where there was no database, a restore that fails leaves none."""
    was_there = live.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            _remove(live)
        raise


def _remove(database: Path) -> None:
    for ending in BESIDE:
        database.with_name(f"{database.name}{ending}").unlink(missing_ok=True)


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


def _replaced_in_a_file(store: Store, now: datetime) -> audit.AuditReport | None:
    try:
        return _replaced(store, now)
    except SqlError as error:
        live = store.engine.url.database
        raise Refused(f"{live}: the database is damaged ({error.orig}); move it away and restore again") from error


def _copy_out(store: Store, part: Path) -> None:
    if store.engine.dialect.name != "sqlite":
        postgresql_files.dump(store, part)
        return
    live = Path(store.engine.url.database or "")
    with closing(_read_only(live)) as source:
        found = _copy(source, part)
    if found != "ok":
        raise Refused(f"{live}: the database is damaged ({found})")


def _read_only(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)


def _copy(source: sqlite3.Connection, part: Path) -> str:
    """Copy a database; return what SQLite says of the copy: `ok`, or what is damaged in it."""
    with closing(sqlite3.connect(part)) as copy:
        source.backup(copy)  # in one step: it reads one moment, and keeps no writer waiting
        found = " ".join(copy.execute("PRAGMA quick_check").fetchone()[0].split())
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")
    return found


def _whole(store: Store) -> audit.AuditReport:
    with store.read() as session:
        report = audit.verify(session)
    if not report.ok:
        raise Refused(f"the audit chain is broken at row {report.bad_number} ({report.problem}): daytwo audit verify")
    return report


def _put_back_sqlite(store: Store, file: Path, aside: Path, ending: _Ending) -> Backup:
    """Everything is made ready in a copy; then the live database becomes that copy in one step."""
    live = Path(store.engine.url.database or "")
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=live.parent) as folder:
        ready = Path(folder) / "daytwo.db"
        _copy_file(file, ready)
        found = _made_ready(ready, file, ending)
        with (
            _kept_aside(store, aside if ending.replaced else None),
            closing(sqlite3.connect(ready)) as source,
            closing(sqlite3.connect(live)) as target,
        ):
            source.backup(target)
    live.chmod(0o600)
    return found


@contextmanager
def _kept_aside(store: Store, aside: Path | None) -> Iterator[None]:
    """Copy the store that is there to `aside`, and remove the copy where what is done in the block fails."""
    try:
        if aside is not None:
            with _written(aside):
                _copy_out(store, aside)
                aside.chmod(0o600)
        yield
    except BaseException:
        if aside is not None:
            _remove(aside)
        raise


def _copy_file(file: Path, ready: Path) -> None:
    try:
        with closing(_read_only(file)) as source:
            found = _copy(source, ready)
    except sqlite3.OperationalError:
        raise  # no room, no rights: nothing that the file is to blame for
    except sqlite3.DatabaseError as error:
        raise BadInput(f"FILE: found {str(file)!r}, which is no backup of a SQLite store ({error})") from error
    if found != "ok":
        raise BadInput(f"FILE: found {str(file)!r}, which is damaged ({found}); use another one")


def _made_ready(ready: Path, file: Path, ending: _Ending) -> Backup:
    copy = Store(f"sqlite:///{ready}")
    try:
        if not copy.has_tables():
            raise BadInput(f"FILE: found {str(file)!r}, a database that is no store of daytwo")
        copy.migrate()
        with copy.write() as session:
            return ending.write(session, file)
    except SqlError as error:
        raise BadInput(f"FILE: found {str(file)!r}, a database that is no store of daytwo ({error.orig})") from error
    except (TooNew, Unreachable) as error:
        # Not of the copy that nobody has heard of.
        raise _about(error, ready, file) from error
    finally:
        copy.close()


def _about(error: DaytwoError, ready: Path, file: Path) -> DaytwoError:
    if isinstance(error, TooNew):
        return TooNew(str(error).replace(f"sqlite:///{ready}", f"in {file}"))
    return Failed(f"{ready.parent.parent}: {str(error).rpartition(': ')[2]}; nothing was changed")


def _put_back_postgresql(store: Store, file: Path, aside: Path, ending: _Ending) -> Backup:
    """The rows go in with a mark that keeps every process away; the mark goes with the end of the restore."""
    postgresql_files.refuse_while_used(store)
    store.check_revision(postgresql_files.revision_in(file), f"in {file}")
    was_marked = postgresql_files.is_marked(store)
    kept = aside if ending.replaced else None
    try:
        if kept is not None:
            postgresql_files.dump(store, kept)
            kept.chmod(0o600)
        postgresql_files.load(store, file)
        store.migrate(restoring=True)
        with store.write() as session:
            found = ending.write(session, file)
            postgresql_files.lift_mark(session)
    except DaytwoError:
        if not was_marked:
            _undo(store, kept)
        raise
    return found


def _undo(store: Store, kept: Path | None) -> None:
    """Put back what was there, where the rows were replaced already; where that fails too, `kept` stays."""
    if postgresql_files.is_marked(store):
        if kept is None:
            postgresql_files.drop_all(store)
        else:
            postgresql_files.load(store, kept)
            with store.write() as session:
                postgresql_files.lift_mark(session)
    if kept is not None:
        kept.unlink(missing_ok=True)


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
