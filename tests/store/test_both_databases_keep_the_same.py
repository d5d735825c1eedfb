"""What is written comes back the same from each database, whatever its own time zone and numbers are."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect
from sqlalchemy.exc import InternalError
from sqlmodel import SQLModel, select

from daytwo.domain.errors import BadInput
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRow, ObservationRow
from tests.builders import NOW
from tests.rows import a_finding_row, a_node, keep

MIGRATE = "import sys; from daytwo.store.engine import Store; Store(sys.argv[1]).migrate()"


def read_back(store: Store, **fields: Any) -> NodeRow:
    keep(store, a_node(**fields))
    with store.read() as session:
        return session.exec(select(NodeRow)).one()


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 11, 30, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2))),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_a_time_comes_back_as_the_same_moment_in_utc(store: Store, at: datetime) -> None:
    found = read_back(store, last_heard_at=at).last_heard_at
    assert found == at
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": None, "b": [1, 1.5, True, "é🔴"], "c": {"d": 2**63}},
        {"nul": "\x00", "lone": "\ud800"},
        {"z": 1, "a": 2},
    ],
    ids=["empty", "nested", "strange", "order"],
)
def test_json_comes_back_as_it_was(store: Store, value: dict[str, Any]) -> None:
    found = read_back(store, inventory=value).inventory
    assert (found, list(found)) == (value, list(value))


@pytest.mark.parametrize("facts", [None, {}, {"at": "now"}])
def test_nothing_is_not_the_same_as_an_empty_answer(store: Store, facts: dict[str, Any] | None) -> None:
    assert read_back(store, facts=facts).facts == facts


@pytest.mark.parametrize("field", ["count", "last_observation", "judged_up_to"])
def test_what_only_grows_has_room(store: Store, field: str) -> None:
    keep(store, a_finding_row(**{field: 2**63 - 1}))
    with store.read() as session:
        assert session.exec(select(getattr(FindingRow, field))).one() == 2**63 - 1


def test_the_newest_kernel_sequence_has_room(store: Store) -> None:
    seen = {"cluster": "east", "node": "n", "fault": "f", "entity": "e", "status": "firing", "first_seen_at": NOW}
    keep(store, ObservationRow(**seen, seen_at=NOW, received_at=NOW, kernel_sequence=2**63 - 1))
    with store.read() as session:
        assert session.exec(select(ObservationRow.kernel_sequence)).one() == 2**63 - 1


def test_an_audit_row_written_in_another_zone_fits_its_hash(store: Store) -> None:
    with store.write() as session:
        audit.append(session, "cli:a", "x", "y", now=NOW.astimezone(timezone(timedelta(hours=-3))))
    with store.read() as session:
        assert audit.verify(session).ok


def test_text_that_postgresql_cannot_keep_is_bad_input(postgres_store: Store) -> None:
    with pytest.raises(BadInput, match="NUL"):
        keep(postgres_store, a_node(state_why="a\x00b"))


def test_what_is_written_in_a_reading_session_is_not_kept(store: Store) -> None:
    with store.read() as session:
        session.add(a_node())
        with contextlib.suppress(InternalError):  # PostgreSQL says so at once
            session.flush()
    with store.read() as session:
        assert session.exec(select(NodeRow)).all() == []


def test_a_reading_session_sees_one_moment(store: Store) -> None:
    with store.read() as session:
        assert session.exec(select(NodeRow.name)).all() == []
        keep(store, a_node())
        assert session.exec(select(NodeRow.name)).all() == []


def test_the_migrations_make_what_the_tables_say(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, SQLModel.metadata) == []


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/empty.db"
        return
    with request.getfixturevalue("postgres").empty_database() as url:
        yield url


def test_two_processes_migrate_at_once(empty_url: str) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, empty_url], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [(process.communicate(timeout=60)[1], process.returncode) for process in running]
    assert told == [("", 0)] * 2
    store = Store(empty_url)
    assert "audit_heads" in inspect(store.engine).get_table_names()
    store.close()
