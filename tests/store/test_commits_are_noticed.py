"""A loop may ask often whether anything has changed, and misses no commit of another process or connection."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from datetime import UTC, datetime

from daytwo.store.commits import Commits
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow
from tests.postgres import Postgres

WRITE = """
import sys, datetime
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow
with Store(sys.argv[1]).write() as session:
    session.add(FreezeRow(scope="*", reason="r", actor="a", at=datetime.datetime.now(datetime.UTC)))
"""


def a_freeze() -> FreezeRow:
    return FreezeRow(scope="*", reason="r", actor="a", at=datetime.now(UTC))


async def test_a_commit_of_this_process_is_noticed_once(store: Store) -> None:
    with contextlib.closing(Commits(store)) as commits:
        await commits.any_new()
        with store.write() as session:
            session.add(a_freeze())
        assert [await commits.any_new() for _ in range(2)] == [True, False]


async def test_a_commit_of_another_process_is_noticed(store: Store) -> None:
    with contextlib.closing(Commits(store)) as commits:
        await commits.any_new()
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", WRITE, store.url], check=True)
        assert await commits.any_new()


async def test_reading_is_no_commit(store: Store) -> None:
    with contextlib.closing(Commits(store)) as commits:
        await commits.any_new()
        with store.read() as session:
            session.get(FreezeRow, 1)
        assert not await commits.any_new()


async def test_what_was_rolled_back_is_no_commit_on_sqlite(store: Store) -> None:
    if store.engine.dialect.name != "sqlite":
        return  # there the end of every transaction that has written is noticed
    with contextlib.closing(Commits(store)) as commits:
        with contextlib.suppress(ZeroDivisionError), store.write() as session:
            session.add(a_freeze())
            session.flush()
            raise ZeroDivisionError
        assert not await commits.any_new()


async def test_a_write_that_is_not_committed_yet_is_noticed_when_it_is(postgres_store: Store) -> None:
    with contextlib.closing(Commits(postgres_store)) as commits:
        with postgres_store.write() as session:
            session.add(a_freeze())
            session.flush()
            await commits.any_new()
            await commits.any_new()
        assert await commits.any_new()


async def test_a_database_that_goes_away_is_no_reason_to_rest(postgres: Postgres, postgres_store: Store) -> None:
    with contextlib.closing(Commits(postgres_store)) as commits:
        await commits.any_new()
        postgres.stop(signal.SIGINT)
        try:
            assert await commits.any_new()
        finally:
            postgres.start()
        await commits.any_new()
        assert not await commits.any_new()
