"""Stores as released versions left them: the tables of their revision, and the rows of a real run (`record_store`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect, text

from daytwo.store.engine import MIGRATIONS, Store

SCHEMAS: Final = Path(__file__).with_name("schemas")
RELEASED: Final = sorted(path.stem for path in SCHEMAS.glob("*.sql"))
Rows = dict[str, list[tuple[Any, ...]]]


def fill(store: Store, release: str) -> None:
    """Make the tables of a release in an empty database, and put its rows in."""
    statements = (SCHEMAS / f"{release}.sql").read_text()
    revision = re.match(r"-- daytwo \S+, revision (\w+)", statements)
    assert revision
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = store.engine
    command.upgrade(config, revision[1])
    if store.engine.dialect.name == "sqlite":
        _run_in_sqlite(store, statements)
    else:
        _run_in_postgresql(store, statements)


def _run_in_sqlite(store: Store, statements: str) -> None:
    with store.engine.connect() as connection:
        raw: Any = connection.connection.driver_connection
        raw.executescript(statements)


def _run_in_postgresql(store: Store, statements: str) -> None:
    with store.write() as session:
        raw: Any = session.connection().connection.driver_connection
        raw.execute(statements)
        for table, column in _numbered(session.connection()):
            # A database that was written row by row has counted; one that was filled has not.
            session.connection().execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), (SELECT max({column}) FROM {table}))"
                )
            )


def _numbered(connection: Connection) -> list[tuple[str, str]]:
    found = connection.execute(
        text("SELECT table_name, column_name FROM information_schema.columns WHERE column_default LIKE 'nextval%'")
    )
    return [(table, column) for table, column in found]


def columns(store: Store) -> dict[str, list[str]]:
    """The columns of every table but alembic's own."""
    seen = inspect(store.engine)
    return {
        table: [column["name"] for column in seen.get_columns(table)]
        for table in seen.get_table_names()
        if table != "alembic_version"
    }


def rows(store: Store, wanted: dict[str, list[str]]) -> Rows:
    """What these columns hold, as the database itself says it."""
    with store.read() as session:
        return {
            table: sorted(session.connection().execute(text(f"SELECT {', '.join(names)} FROM {table}")).all(), key=repr)
            for table, names in wanted.items()
        }
