"""A backup holds one moment of the store, whoever writes meanwhile, and a restore is whole or not at all."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import col, func, select

from daytwo.domain.errors import BadInput, Refused, TooNew
from daytwo.store import audit, backups, restored
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, FreezeRow, IntentRow, LeaseRow, NodeRow, NodeTransitionRow, RestoreRow
from daytwo.store.versions import UNFINISHED
from tests.builders import NOW
from tests.rows import a_cluster, a_node, a_repair, keep
from tests.upgrades.released import columns, rows

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def used(store: Store) -> Store:
    """A store with a repair, an intent that is not sent, and a lease that has run out."""
    intent = IntentRow(
        id="r/act/reboot",
        repair_id=a_repair().id,
        cluster="east",
        node="gpu-07",
        open_node="east/gpu-07",
        driver="hardware:east:0",
        kind="reboot",
        target="gpu-07",
        created_at=NOW,
        updated_at=NOW,
    )
    lease = LeaseRow(name="reconcile", holder="c:1", epoch=7, expires_at=NOW)
    keep(store, a_cluster(), a_node(stream=3, sequence=9, facts={"states": ["IDLE"]}), a_repair(), intent, lease)
    with store.write() as session:
        audit.append(session, "cli:alice", "approve", "r-1", now=NOW)
    return store


@pytest.fixture
def backup(used: Store, tmp_path: Path) -> Path:
    backups.take(used, tmp_path / "backup", actor="cli:alice", now=NOW)
    return tmp_path / "backup"


def put_back(store: Store, file: Path, folder: Path) -> backups.Backup:
    store.engine.dispose()  # nobody may be connected
    return backups.put_back(store.url, file, aside=folder / "aside", actor="cli:bob", now=LATER)


def change(store: Store, *statements: str) -> None:
    with store.write() as session:
        for statement in statements:
            session.connection().execute(text(statement))


def test_a_restored_store_holds_what_the_backup_held(used: Store, backup: Path, tmp_path: Path) -> None:
    kept = {name: names for name, names in columns(used).items() if name in ("clusters", "repairs", "repair_events")}
    before = rows(used, kept)
    change(used, "DELETE FROM repairs", "UPDATE clusters SET policy_revision = 9")
    put_back(used, backup, tmp_path)
    assert rows(used, kept) == before


def test_it_says_when_it_was_taken_and_how_far_the_audit_went(used: Store, backup: Path, tmp_path: Path) -> None:
    found = put_back(used, backup, tmp_path)
    assert (found.at, found.count) == (NOW, 2)


def test_the_chain_goes_on_and_names_what_was_replaced(used: Store, backup: Path, tmp_path: Path) -> None:
    with used.write() as session:
        audit.append(session, "cli:eve", "approve", "r-2", now=NOW)
    put_back(used, backup, tmp_path)
    with used.read() as session:
        shown = session.exec(select(AuditRow).order_by(col(AuditRow.number))).all()
        assert audit.verify(session).problem == ""
    assert [row.act for row in shown] == ["approve", "backup", "restore", "freeze"]
    assert (shown[2].actor, shown[2].data["replaced_count"]) == ("cli:bob", 3)


def test_what_was_intended_may_have_been_sent(used: Store, backup: Path, tmp_path: Path) -> None:
    put_back(used, backup, tmp_path)
    with used.read() as session:
        intent = session.exec(select(IntentRow)).one()
    assert (intent.state, intent.tries, intent.deadline) == ("sending", 1, LATER)


def test_nodes_are_asked_anew_and_no_old_holder_can_write(used: Store, backup: Path, tmp_path: Path) -> None:
    put_back(used, backup, tmp_path)
    with used.read() as session:
        node, lease = session.exec(select(NodeRow)).one(), session.exec(select(LeaseRow)).one()
    assert (node.stream, node.sequence, node.facts, node.due) == (3 + restored.STREAMS, 0, None, 1)
    assert lease.epoch == 7 + restored.EPOCHS


def test_everything_is_frozen_and_unsettled(used: Store, backup: Path, tmp_path: Path) -> None:
    put_back(used, backup, tmp_path)
    with used.read() as session:
        assert session.exec(select(FreezeRow.scope)).all() == ["*"]
        assert restored.unsettled(session) is not None


def test_a_backup_taken_beside_a_writer_is_of_one_moment(used: Store, tmp_path: Path) -> None:
    with Writing(used):
        backups.take(used, tmp_path / "b", actor="cli:alice", now=NOW)
    put_back(used, tmp_path / "b", tmp_path)
    with used.read() as session:
        written = session.exec(select(func.count()).select_from(NodeTransitionRow)).one()
        told = session.exec(select(func.count()).where(AuditRow.act == "moved")).one()
        assert audit.verify(session).problem == ""
    assert written == told


class Writing:
    """A thread that writes a row and its line of the audit, again and again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stop = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._began.wait(20)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._stop.is_set():
            with self._store.write() as session:
                session.add(NodeTransitionRow(cluster="east", node="gpu-07", from_state="a", to_state="b", at=NOW))
                audit.append(session, "daytwo", "moved", "gpu-07", now=NOW)
            self._began.set()


def test_the_store_before_is_kept_and_can_be_put_back_too(used: Store, backup: Path, tmp_path: Path) -> None:
    change(used, "UPDATE clusters SET policy_revision = 9")
    put_back(used, backup, tmp_path)
    used.engine.dispose()
    backups.put_back(used.url, tmp_path / "aside", aside=tmp_path / "aside-2", actor="cli:bob", now=LATER)
    with used.read() as session:
        assert session.connection().execute(text("SELECT policy_revision FROM clusters")).scalar() == 9


def test_files_are_for_their_owner_alone(used: Store, backup: Path, tmp_path: Path) -> None:
    put_back(used, backup, tmp_path)
    assert {stat.S_IMODE(file.stat().st_mode) for file in (backup, tmp_path / "aside")} == {0o600}


def test_a_file_that_exists_is_not_written_over(used: Store, backup: Path) -> None:
    with pytest.raises(BadInput, match="which exists; allowed is the name of a new file"):
        backups.take(used, backup, actor="cli:alice", now=NOW)


def test_a_store_in_use_is_not_replaced(used: Store, backup: Path, tmp_path: Path) -> None:
    keep(used, LeaseRow(name="watch", holder="c:2", expires_at=LATER + timedelta(seconds=9)))
    with pytest.raises(Refused, match=r"c:2 runs loop 'watch'; stop every process of daytwo first"):
        put_back(used, backup, tmp_path)


def test_a_backup_of_a_newer_version_is_refused(used: Store, tmp_path: Path) -> None:
    change(used, "UPDATE alembic_version SET version_num = '0099'")
    backups.take(used, tmp_path / "newer", actor="cli:alice", now=NOW)
    with pytest.raises(TooNew):
        put_back(used, tmp_path / "newer", tmp_path)


def test_a_backup_with_a_broken_chain_is_not_acted_on(used: Store, tmp_path: Path) -> None:
    file = tmp_path / "edited"
    backups.take(used, file, actor="cli:alice", now=NOW)
    change(used, "UPDATE audit SET actor = 'cli:mallory' WHERE number = 1")
    with pytest.raises(Refused, match="the audit chain is broken at row 1"):
        backups.take(used, tmp_path / "again", actor="cli:alice", now=NOW)


def test_an_older_store_is_put_back_over_a_newer_one(used: Store, backup: Path, tmp_path: Path) -> None:
    change(used, "UPDATE alembic_version SET version_num = '0099'", "CREATE TABLE of_a_later_version (a INTEGER)")
    put_back(used, backup, tmp_path)
    used.migrate()
    assert "of_a_later_version" not in columns(used)


@pytest.mark.parametrize("content", [b"", b"no database", b"PGDMP\x00\x00"])
def test_a_file_that_is_no_backup_is_refused(used: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "junk").write_bytes(content)
    with pytest.raises(BadInput, match="junk"):
        put_back(used, tmp_path / "junk", tmp_path)
    with used.read() as session:
        assert session.exec(select(RestoreRow)).first() is None


def test_a_restore_that_was_not_finished_keeps_every_process_away(used: Store) -> None:
    change(used, f"CREATE TABLE {UNFINISHED} (a INTEGER)")
    with pytest.raises(Refused, match="a restore was not finished; run it again: daytwo restore FILE"):
        used.migrate()


@pytest.fixture
def connected(postgres_store: Store) -> Iterator[Store]:
    other = Store(postgres_store.url)
    with other.read() as session:
        session.connection()
        yield postgres_store
    other.close()


def test_a_postgresql_to_which_somebody_is_connected_is_not_replaced(connected: Store, tmp_path: Path) -> None:
    backups.take(connected, tmp_path / "b", actor="cli:alice", now=NOW)
    with pytest.raises(Refused, match="connections of daytwo are open to the store"):
        put_back(connected, tmp_path / "b", tmp_path)
