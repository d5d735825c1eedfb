"""Opens the store. `read()` and `write()` are the only ways in; both are short and synchronous: call them in a thread.

SQLite runs with WAL, and every write begins with `BEGIN IMMEDIATE`: with its default, two processes that read and then
write lose updates.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlmodel import Session

MIGRATIONS = Path(__file__).with_name("migrations")
BUSY_SECONDS = 15


class Store:
    """A connection pool to one store."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = _engine(url)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for reading; nothing written in it is kept."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction that may write: committed at the end, rolled back on an error."""
        options = {"daytwo_write": True}
        with self.engine.connect().execution_options(**options) as connection:
            with Session(connection, expire_on_commit=False) as session, session.begin():
                yield session
            connection.commit()

    def migrate(self) -> None:
        """Bring the tables up to date; safe to call at every start and from several processes."""
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["engine"] = self.engine
        command.upgrade(config, "head")

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def _engine(url: str) -> Engine:
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


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
