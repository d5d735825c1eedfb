"""A loop may ask often whether anything has changed, and misses no commit of another process or connection."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from datetime import UTC, datetime

from daytwo.store.commits import Commits
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow

WRITE = """
import sys, datetime
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow
with Store(sys.argv[1]).write() as session:
    session.add(FreezeRow(scope="*", reason="r", actor="a", at=datetime.datetime.now(datetime.UTC)))
"""


def a_freeze() -> FreezeRow:
    return FreezeRow(scope="*", reason="r", actor="a", at=datetime.now(UTC))


def test_a_commit_of_this_process_is_noticed_once(store: Store) -> None:
    with contextlib.closing(Commits(store)) as commits:
        with store.write() as session:
            session.add(a_freeze())
        assert commits.any_new()
        if store.engine.dialect.name == "sqlite":
            assert not commits.any_new()


def test_a_commit_of_another_process_is_noticed(store: Store) -> None:
    with contextlib.closing(Commits(store)) as commits:
        subprocess.run([sys.executable, "-c", WRITE, store.url], check=True)
        assert commits.any_new()


def test_reading_and_what_was_rolled_back_are_no_commits(store: Store) -> None:
    if store.engine.dialect.name != "sqlite":
        return  # there every question is answered with yes
    with contextlib.closing(Commits(store)) as commits:
        with contextlib.suppress(ZeroDivisionError), store.write() as session:
            session.add(a_freeze())
            session.flush()
            raise ZeroDivisionError
        with store.read() as session:
            session.get(FreezeRow, 1)
        assert not commits.any_new()
