"""What every test may use: a store on each database that is supported, its tables already there."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from daytwo.store.engine import Store
from tests import postgres as pg

CORE_LOG = LoggingConfig(
    filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
    forwarding=LogForwardingConfig(logger=logging.getLogger("temporalio.core")),
)
# Temporal's core logs to standard output, late, and so into what another test reads of a command.
Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=CORE_LOG)))


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
