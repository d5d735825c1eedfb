"""A store that a released version has filled is brought to the newest tables, and nothing in it is lost or changed."""

from __future__ import annotations

import pytest
from sqlmodel import SQLModel, col, select

from daytwo.service import reads
from daytwo.service.reads.paging import Filter
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, RepairRow
from tests.upgrades.released import RELEASED, columns, fill, rows

OPEN = {"proposed", "held", "waiting", "acting", "needs-help"}
released = pytest.mark.parametrize("release", RELEASED)


def migrated(store: Store, release: str) -> Store:
    fill(store, release)
    store.migrate()
    return store


@released
def test_every_row_of_every_table_is_as_before(empty: Store, release: str) -> None:
    fill(empty, release)
    known = columns(empty)
    before = rows(empty, known)
    empty.migrate()
    assert all(before.values())
    assert rows(empty, known) == before


@released
def test_what_new_columns_hold_for_old_rows_is_allowed(empty: Store, release: str) -> None:
    migrated(empty, release)
    with empty.read() as session:
        for table in SQLModel.metadata.sorted_tables:
            needed = [column for column in table.columns if not column.nullable]
            found = session.connection().execute(select(*needed)).all()
            assert [row for row in found if None in row] == [], table.name


@released
def test_the_audit_chain_is_whole_and_can_be_added_to(empty: Store, release: str) -> None:
    migrated(empty, release)
    with empty.write() as session:
        last = session.exec(select(RepairRow)).first()
        assert last is not None
        audit.append(session, "cli:bob", "approve", last.id, now=last.opened_at)
    with empty.read() as session:
        assert audit.verify(session).problem == ""


@released
def test_open_repairs_stand_where_they_stood(empty: Store, release: str) -> None:
    migrated(empty, release)
    with empty.read() as session:
        shown = {item.state for item in reads.repairs(session, Filter(active_only=True)).items}
        sent = session.exec(select(IntentRow.kind).where(col(IntentRow.open_node).is_not(None))).all()
    assert shown == OPEN
    assert list(sent) == ["reboot"]


@released
def test_it_is_migrated_twice_without_harm(empty: Store, release: str) -> None:
    migrated(empty, release)
    once = rows(empty, columns(empty))
    empty.migrate()
    assert rows(empty, columns(empty)) == once
