"""What every test may use: a store on each database that is supported, its tables already there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.store.engine import Store
from tests import postgres as pg


@pytest.fixture(scope="session")
def postgres() -> Iterator[pg.Postgres]:
    """One server for all tests. Skips, saying why, where none can be started."""
    if reason := pg.missing():
        pytest.skip(f"no real PostgreSQL here: {reason}")
    with pg.a_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store with all tables and no rows, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "daytwo.db"
    store = Store(f"sqlite:///{path}")
    store.migrate()
    store.close()  # the last one out writes the log into the file
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path) -> Iterator[str]:
    """The address of an empty store with all tables, one run of the test for each kind of database."""
    if request.param == "sqlite":
        shutil.copyfile(migrated_file, tmp_path / "daytwo.db")
        yield f"sqlite:///{tmp_path}/daytwo.db"
        return
    server: pg.Postgres = request.getfixturevalue("postgres")
    with server.database() as url:
        yield url


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store with all tables."""
    opened = Store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def postgres_store(postgres: pg.Postgres) -> Iterator[Store]:
    """An empty store with all tables, for what only PostgreSQL can do."""
    with postgres.database() as url:
        opened = Store(url)
        yield opened
        opened.close()
