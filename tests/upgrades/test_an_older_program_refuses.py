"""A program that is older than its store does not touch it, and says which version does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from daytwo import __version__
from daytwo.domain.errors import TooNew
from daytwo.store.engine import Store
from daytwo.store.tables import SchemaVersionRow
from tests.builders import NOW
from tests.rows import keep

PROGRAMS = ["workers.service", "workers.gateway", "workers.controller", "workers.control", "workers.up"]


@pytest.fixture
def newer(store: Store) -> Store:
    """A store that daytwo 7.1.0 has migrated."""
    keep(store, SchemaVersionRow(revision="0099", version="7.1.0", at=NOW))
    with store.write() as session:
        session.connection().execute(text("UPDATE alembic_version SET version_num = '0099'"))
    return store


def test_both_versions_and_the_way_out_are_named(newer: Store) -> None:
    with pytest.raises(TooNew) as refused:
        newer.migrate()
    assert f"made by daytwo 7.1.0; this is daytwo {__version__}" in str(refused.value)
    assert "run daytwo 7.1.0 or newer, or restore a backup from before the upgrade" in str(refused.value)


def test_nothing_is_written(newer: Store) -> None:
    with pytest.raises(TooNew):
        newer.migrate()
    with newer.read() as session:
        assert session.connection().execute(text("SELECT version_num FROM alembic_version")).scalar() == "0099"


def test_a_store_whose_version_nobody_wrote_down_is_refused_too(newer: Store) -> None:
    with newer.write() as session:
        session.connection().execute(text("DROP TABLE schema_versions"))
    with pytest.raises(TooNew, match="made by daytwo of a later version"):
        newer.migrate()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_ends_with_a_code_of_its_own(newer: Store, program: str, tmp_path: Path) -> None:
    told = started(program, newer.url, tmp_path)
    assert (told.returncode, "made by daytwo 7.1.0" in told.stderr) == (TooNew.exit_code, True), told.stderr


def test_a_store_of_this_version_names_it(store: Store) -> None:
    with store.read() as session:
        assert {row.version for row in session.connection().execute(text("SELECT version FROM schema_versions"))} == {
            __version__
        }


def started(program: str, store_url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DAYTWO_STATE_DIR": str(folder), "DAYTWO_STORE_URL": store_url}
    ports = ["--any-port"] if program == "workers.up" else []
    command = [sys.executable, "-m", program, *ports]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
