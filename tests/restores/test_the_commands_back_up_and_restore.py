"""`daytwo backup` and `daytwo restore` as people run them: programs with messages and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlmodel import col, select

from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, ClusterRow
from tests.rows import a_cluster, keep

Ran = subprocess.CompletedProcess[str]
Daytwo = Callable[..., Ran]


@pytest.fixture
def daytwo(tmp_path: Path) -> Daytwo:
    """The program, on a store of its own in the folder `state`."""
    state = tmp_path / "state"
    state.mkdir()
    store = Store(f"sqlite:///{state}/daytwo.db")
    store.migrate()
    keep(store, a_cluster())
    store.close()

    def run(*words: object) -> Ran:
        own = {name: value for name, value in os.environ.items() if not name.startswith("DAYTWO_")}
        command = [sys.executable, "-m", "daytwo.cli.main", *map(str, words)]
        return subprocess.run(
            command, env={**own, "DAYTWO_STATE_DIR": str(state)}, capture_output=True, text=True, check=False
        )

    return run


def clusters(tmp_path: Path) -> list[str]:
    store = Store(f"sqlite:///{tmp_path}/state/daytwo.db")
    with store.read() as session:
        found = list(session.exec(select(ClusterRow.name)))
    store.close()
    return found


def test_what_was_lost_since_is_there_again(daytwo: Daytwo, tmp_path: Path) -> None:
    told = daytwo("backup", tmp_path / "b")
    assert (told.returncode, told.stderr) == (0, "")
    store = Store(f"sqlite:///{tmp_path}/state/daytwo.db")
    with store.write() as session:
        session.delete(session.exec(select(ClusterRow)).one())
    store.close()
    told = daytwo("restore", tmp_path / "b")
    assert (told.returncode, "Everything is frozen" in told.stdout) == (0, True), told.stderr
    assert clusters(tmp_path) == ["east"]


def test_who_did_it_is_in_the_audit(daytwo: Daytwo, tmp_path: Path) -> None:
    daytwo("backup", tmp_path / "b")
    daytwo("restore", tmp_path / "b")
    store = Store(f"sqlite:///{tmp_path}/state/daytwo.db")
    with store.read() as session:
        acts = session.exec(select(AuditRow).where(col(AuditRow.act).in_(("backup", "restore")))).all()
    store.close()
    assert {row.actor.partition(":")[0] for row in acts} == {"cli"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("backup", "no/such/folder/b"), 2, "allowed is a file in one that does"),
        (("restore", "there-is-none"), 2, "there-is-none', which does not exist; allowed is a file that"),
        (("restore", "."), 2, "'.' is a directory"),
        (("backup",), 2, "Missing argument 'FILE'"),
    ],
)
def test_a_slip_is_told_in_three_lines(daytwo: Daytwo, words: tuple[str, ...], code: int, says: str) -> None:
    told = daytwo(*words)
    assert (told.returncode, says in told.stderr) == (code, True), told.stderr
    assert "Traceback" not in told.stderr
