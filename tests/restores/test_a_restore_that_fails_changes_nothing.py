"""Whatever a restore fails of, the store is what it was, nothing lies beside it, and the right file is named."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from daytwo.domain.errors import BadInput, DaytwoError, Failed, Refused, TooNew
from daytwo.store import audit, backups, postgresql_files
from daytwo.store.engine import Store
from tests.builders import NOW
from tests.rows import a_cluster, a_node, a_repair, keep
from tests.upgrades.released import columns, rows

AT_ONCE = NOW + timedelta(hours=1)
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@pytest.fixture
def used(store: Store) -> Store:
    """A store with enough in it that half a file is not the whole of it."""
    keep(store, a_cluster(), *(a_node(name=f"gpu-{number:04}") for number in range(500)), a_repair())
    with store.write() as session:
        audit.append(session, "cli:alice", "approve", "r-1", now=NOW)
    return store


@pytest.fixture
def backup(used: Store, tmp_path: Path) -> Path:
    backups.take(used, tmp_path / "backup", actor="cli:alice", now=NOW)
    return tmp_path / "backup"


def fails(store: Store, file: Path, folder: Path) -> DaytwoError:
    """What a restore from `file` says; it fails if that has changed anything in the store or in the folder."""
    kept = columns(store)
    before, files = rows(store, kept), listed(folder)
    store.engine.dispose()
    with pytest.raises(DaytwoError) as error:
        backups.put_back(store.url, file, aside=folder / "aside", actor="cli:bob", now=AT_ONCE)
    assert (columns(store), rows(store, kept)) == (kept, before)
    assert listed(folder) == files
    return error.value


def listed(folder: Path) -> set[str]:
    """The files, without those that SQLite keeps beside an open database."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))}


def test_a_file_that_is_missing_is_named(used: Store, tmp_path: Path) -> None:
    error = fails(used, tmp_path / "there-is-none", tmp_path)
    said = f"FILE: found '{tmp_path}/there-is-none', which does not exist; allowed is a file that `daytwo backup` wrote"
    assert (type(error), str(error)) == (BadInput, said)


def test_a_folder_is_no_backup(used: Store, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    error = fails(used, tmp_path / "folder", tmp_path)
    assert str(error).startswith(f"FILE: found '{tmp_path}/folder', which cannot be read (Is a directory)")


@pytest.mark.parametrize("content", [b"", b"no database at all", b"PGDMP\x00\x00"], ids=["empty", "text", "a head"])
def test_a_file_that_is_no_backup_is_named(used: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "junk").write_bytes(content)
    error = fails(used, tmp_path / "junk", tmp_path)
    assert (type(error), f"'{tmp_path}/junk'" in str(error)) == (BadInput, True), str(error)


def test_another_database_of_sqlite_is_no_backup(used: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE alembic_version (version_num TEXT)")
        other.execute("INSERT INTO alembic_version VALUES ('0001')")
        other.commit()
    error = fails(used, tmp_path / "other", tmp_path)
    assert (type(error), f"'{tmp_path}/other'" in str(error)) == (BadInput, True), str(error)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_half_a_backup_is_no_backup(used: Store, backup: Path, tmp_path: Path, share: float) -> None:
    os.truncate(backup, int(backup.stat().st_size * share))
    error = fails(used, backup, tmp_path)
    assert (type(error), f"FILE: found '{backup}'" in str(error)) == (BadInput, True), str(error)


def test_a_backup_of_a_newer_version_is_named_and_not_a_copy_of_it(used: Store, tmp_path: Path) -> None:
    with used.write() as session:
        session.connection().execute(text("UPDATE alembic_version SET version_num = '0099'"))
    backups.take(used, tmp_path / "newer", actor="cli:alice", now=NOW)
    error = fails(used, tmp_path / "newer", tmp_path)
    assert isinstance(error, TooNew)
    assert f"store in {tmp_path}/newer: its tables are at revision 0099" in str(error)


def test_a_backup_whose_audit_was_edited_is_refused(used: Store, tmp_path: Path) -> None:
    edited(used, tmp_path)
    error = fails(used, tmp_path / "edited", tmp_path)
    assert (type(error), "whose audit chain is broken" in str(error)) == (Refused, True), str(error)


def test_what_fails_on_an_empty_database_leaves_it_empty(used: Store, tmp_path: Path) -> None:
    edited(used, tmp_path)
    empty(used)
    used.engine.dispose()
    with pytest.raises(Refused, match="whose audit chain is broken"):
        backups.put_back(used.url, tmp_path / "edited", aside=tmp_path / "aside", actor="cli:bob", now=AT_ONCE)
    path = Path(used.engine.url.database or "")
    assert not path.exists() if used.engine.dialect.name == "sqlite" else inspect(used.engine).get_table_names() == []
    assert not (tmp_path / "aside").exists()


def empty(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        for ending in backups.BESIDE:
            Path(f"{store.engine.url.database}{ending}").unlink(missing_ok=True)
    else:
        postgresql_files.drop_all(store)


def edited(store: Store, folder: Path) -> None:
    """A backup in which somebody has changed a line of the audit."""
    change = "UPDATE audit SET actor = 'cli:mallory' WHERE number = 1"
    if store.engine.dialect.name == "sqlite":
        backups.take(store, folder / "edited", actor="cli:alice", now=NOW)
        with closing(sqlite3.connect(folder / "edited")) as copy:
            copy.execute(change)
            copy.commit()
        return
    with store.write() as session:
        session.connection().execute(text(change))
    postgresql_files.dump(store, folder / "edited")
    with store.write() as session:
        session.connection().execute(text("UPDATE audit SET actor = 'cli:alice' WHERE number = 1"))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_damaged_store_is_to_be_moved_away_first(used: Store, backup: Path, tmp_path: Path) -> None:
    used.close()
    live = Path(used.engine.url.database or "")
    live.write_bytes(b"SQLite format 3\0" + b"\0" * 5000)
    with pytest.raises(Refused, match=r"the database is damaged .*; move it away and restore again"):
        backups.put_back(used.url, backup, aside=tmp_path / "aside", actor="cli:bob", now=AT_ONCE)
    assert not (tmp_path / "aside").exists()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with a store in it, and room for half of another."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@ROOT_ONLY
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("room", [64, 700, 1000])
def test_a_full_disk_is_told_and_nothing_is_changed(
    used: Store, backup: Path, tmp_path: Path, small: Path, room: int
) -> None:
    used.close()
    shutil.copyfile(used.engine.url.database or "", small / "daytwo.db")
    store = Store(f"sqlite:///{small}/daytwo.db")
    store.engine.connect().close()
    fill(small, room)
    error = fails(store, backup, small)
    store.close()
    assert (type(error), "full" in str(error) and f"{small}" in str(error)) == (Failed, True), str(error)


@ROOT_ONLY
def test_a_backup_for_which_there_is_no_room_leaves_nothing(used: Store, small: Path) -> None:
    fill(small, 8)
    with pytest.raises(Failed, match=r"full|No space left on device"):
        backups.take(used, small / "backup", actor="cli:alice", now=NOW)
    assert listed(small) == {"fill"}


def fill(folder: Path, leave_kib: int) -> None:
    free = shutil.disk_usage(folder).free
    (folder / "fill").write_bytes(b"\0" * max(0, free - leave_kib * 1024))


@ROOT_ONLY
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_folder_that_cannot_be_written_is_told(used: Store, backup: Path, tmp_path: Path, small: Path) -> None:
    used.close()
    shutil.copyfile(used.engine.url.database or "", small / "daytwo.db")
    before = (small / "daytwo.db").read_bytes()
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    with pytest.raises(DaytwoError, match=str(small)):
        backups.put_back(f"sqlite:///{small}/daytwo.db", backup, aside=tmp_path / "aside", actor="a", now=AT_ONCE)
    assert ((small / "daytwo.db").read_bytes(), (tmp_path / "aside").exists()) == (before, False)


@ROOT_ONLY
def test_who_may_not_read_the_file_is_told_so(used: Store, backup: Path, tmp_path: Path) -> None:
    backup.chmod(0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(BadInput, match=r"which cannot be read \(Permission denied\); allowed is a file that"):
            backups.put_back(used.url, backup, aside=tmp_path / "aside", actor="cli:bob", now=AT_ONCE)
    finally:
        os.seteuid(0)
