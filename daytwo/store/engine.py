"""Opens the store: SQLite for a plane on one machine, PostgreSQL for one on several.

`read()`, `write()` and `change()` are the only ways in; all are short and synchronous: call them in a thread.
SQLite runs with WAL, and every write begins with `BEGIN IMMEDIATE`: with its default, two processes that read and then
write lose updates. On PostgreSQL whoever reads in order to write takes locks: `daytwo.store.locks`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlmodel import Session

from daytwo.store import versions
from daytwo.store.failures import Collision, is_taken, translated
from daytwo.store.patient import PatientConnection

MIGRATIONS = Path(__file__).with_name("migrations")
BUSY_SECONDS: Final = 15
"""How long a writer waits for another. On PostgreSQL one that pauses inside its transaction loses it after as long."""
CONNECT_SECONDS: Final = 5
STATEMENT_SECONDS: Final = 20
"""After this PostgreSQL gives a statement up. Longer than a writer waits for another, who is told of then."""
ANSWER_SECONDS: Final = 25.0
"""After this we give a PostgreSQL up that hangs: it would have given up the statement before."""
TRIES: Final = 5
"""Of one `change` that collides with others."""

DEAD_NETWORK: Final = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""So that the kernel itself finds a server gone whose host has lost power."""

R = TypeVar("R")


class Store:
    """A connection pool to one store."""

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.url = url
        self.engine = _engine(make_url(url), answer_seconds)
        self._reading = self.engine.execution_options(**_reading(self.engine))
        self._writing = self.engine.execution_options(daytwo_write=True)
        self._name = self.engine.url.render_as_string(hide_password=True)
        self._closed = False
        event.listen(self.engine, "checkin", self._on_checkin)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for reading, which sees one moment; nothing written in it is kept. Raises `TryAgain`."""
        with self.failing_well(), Session(self._reading, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction that may write: committed at the end, rolled back on an error.

        Raises `TryAgain` where another was in the way for too long, and `Unreachable` where the database is away.
        """
        with (
            self.failing_well(),
            Session(self._writing, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    def change(self, work: Callable[[Session], R]) -> R:
        """Do `work` in a transaction that may write, and again where it collided with another's.

        Two collide that write the same new row, or that wait for each other. `work` must be good for being called
        again. Raises as `write` does.
        """
        for pause in (0.02 * 2**tried for tried in range(TRIES - 1)):
            try:
                with self.write() as session:
                    return work(session)
            except (Collision, SQLAlchemyError) as error:
                if not isinstance(error, Collision) and not is_taken(error):
                    raise
            time.sleep(SystemRandom().uniform(0, pause))
        with self.write() as session:
            return work(session)

    def migrate(self, *, restoring: bool = False) -> None:
        """Bring the tables up to date; safe to call at every start and from several processes.

        Raises `TryAgain`; `TooNew` where a newer daytwo has changed them; `Refused` where a restore was not finished,
        unless it is that restore which calls.
        """
        config = self._migrations()
        with self.failing_well():
            self._check(config, restoring=restoring)
            command.upgrade(config, "head")
        newest = versions.known_revisions(config)[0]
        self.change(lambda session: versions.note_version(session, newest))

    def check_version(self) -> None:
        """Raise as `migrate` does, and write nothing."""
        with self.failing_well():
            self._check(self._migrations(), restoring=False)

    def check_revision(self, revision: str, where: str) -> None:
        """Raise `TooNew` for a revision of the tables, found in `where`, that this program does not know."""
        versions.refuse_revision(revision, versions.known_revisions(self._migrations()), where, wrote=None)

    def has_tables(self) -> bool:
        """Whether somebody has made tables in it."""
        with self.failing_well(), self._reading.connect() as connection:
            return versions.found_revision(connection) is not None

    def _check(self, config: Config, *, restoring: bool) -> None:
        with self._reading.connect() as connection:
            if not restoring:
                versions.refuse_unfinished(connection, self._name)
            versions.refuse_newer(connection, versions.known_revisions(config), self._name)

    def _migrations(self) -> Config:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["engine"] = self.engine
        return config

    def close(self) -> None:
        """Close all connections; those that other threads still use, when they are done with them."""
        self._closed = True
        self.engine.dispose()

    def _on_checkin(self, _connection: object, record: ConnectionPoolEntry) -> None:
        if self._closed:
            record.invalidate()

    @contextmanager
    def failing_well(self) -> Iterator[None]:
        """Turn errors of the database in the block into ours, for who does not use a session."""
        try:
            yield
        except SQLAlchemyError as error:
            ours = translated(error, self._name)
            if ours is None:
                raise
            raise ours from error


def _engine(url: URL, answer_seconds: float) -> Engine:
    if url.get_backend_name() != "sqlite":
        return _postgresql(url, answer_seconds)
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, hide_parameters=True)
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _postgresql(url: URL, answer_seconds: float) -> Engine:
    patience = f"{BUSY_SECONDS}s"
    settings = {
        "timezone": "UTC",
        "lock_timeout": patience,
        "idle_in_transaction_session_timeout": patience,
        "statement_timeout": f"{STATEMENT_SECONDS}s",
    }
    given = {
        "application_name": "daytwo",
        "connect_timeout": str(CONNECT_SECONDS),
        **DEAD_NETWORK,
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=BUSY_SECONDS,
        isolation_level="READ COMMITTED",
        hide_parameters=True,  # an error would quote what nodes and people said into the log
        connect_args={name: value for name, value in given.items() if name not in url.query},
    )
    event.listen(engine, "do_connect", lambda *given: _connect_patiently(answer_seconds, *given))
    return engine


def _connect_patiently(
    answer_seconds: float, _dialect: object, _record: object, arguments: list[Any], named: dict[str, Any]
) -> PatientConnection:
    connection = PatientConnection.connect(*arguments, **named)
    connection.patience = answer_seconds
    return connection


def _reading(engine: Engine) -> dict[str, Any]:
    if engine.dialect.name == "sqlite":
        return {}
    return {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    # Python's driver would begin transactions by itself, and late; SQLAlchemy's `begin` event does it instead.
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
        f"busy_timeout={BUSY_SECONDS * 1000}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Any) -> None:
    write = connection.get_execution_options().get("daytwo_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
