"""A PostgreSQL that is stopped keeps its sockets open and says nothing: nobody waits for it for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlmodel import Session, select

from daytwo.domain.errors import TryAgain, Unreachable
from daytwo.store.commits import Commits
from daytwo.store.engine import Store
from daytwo.store.patient import alone
from daytwo.store.tables import NodeRow
from daytwo.temporal import Repairs, TemporalDelivery, connect
from tests.postgres import Postgres
from tests.rows import a_node, keep

PATIENCE = 0.3
LONGEST = 2 * PATIENCE + 2 + 1
"""For a question, for the connection that was idle, for a new one (libpq waits 2 s at least), and some for us."""


@pytest.fixture
def store(postgres: Postgres) -> Iterator[Store]:
    """A store that waits for an answer for less than a second, with a connection that is open already."""
    with postgres.database() as url:
        opened = Store(f"{url}&connect_timeout=2", answer_seconds=PATIENCE)
        keep(opened, a_node())
        yield opened
        opened.close()


def names(store: Store) -> list[str]:
    with store.read() as session:
        return list(session.exec(select(NodeRow.name)))


def test_who_asks_is_told_in_time_and_it_is_used_again_afterwards(postgres: Postgres, store: Store) -> None:
    with postgres.hanging():
        began = time.monotonic()
        with pytest.raises(Unreachable, match="does not answer"):
            names(store)
        assert time.monotonic() - began < LONGEST
    assert names(store) == ["gpu-07"]


def test_a_write_that_it_stops_in_is_not_half_done(postgres: Postgres, store: Store) -> None:
    def work(session: Session) -> None:
        session.get_one(NodeRow, ("east", "gpu-07")).state_why = "half"
        session.flush()
        with postgres.hanging():
            session.get_one(NodeRow, ("east", "gpu-07"), populate_existing=True)

    with pytest.raises(Unreachable, match=r"no answer within 0\.3 s"):
        store.change(work)
    with store.read() as session:
        assert session.exec(select(NodeRow.state_why)).one() == ""


def test_no_thread_is_kept(postgres: Postgres, store: Store) -> None:
    errors: list[Exception] = []

    def ask() -> None:
        try:
            names(store)
        except TryAgain as error:
            errors.append(error)

    with postgres.hanging():
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15 + LONGEST)
    assert len(errors) == 8


async def test_a_loop_that_asks_for_commits_goes_on(postgres: Postgres, store: Store) -> None:
    commits = Commits(store, answer_seconds=PATIENCE)
    await commits.any_new()
    with postgres.hanging():
        assert await commits.any_new()
        commits.close()


def test_who_needs_longer_takes_a_connection_of_its_own(store: Store) -> None:
    with store.engine.connect() as connection:
        alone(connection, None)
        connection.execute(text("SELECT pg_sleep(:seconds)"), {"seconds": 2 * PATIENCE})
    with pytest.raises(Unreachable), store.read() as session:
        session.connection().execute(text("SELECT pg_sleep(:seconds)"), {"seconds": 2 * PATIENCE})


async def test_who_brings_a_decision_to_its_repair_keeps_nobody_else_waiting(postgres: Postgres, store: Store) -> None:
    delivery = TemporalDelivery(store, Repairs(await connect(lazy=True), "nobody"))
    with postgres.hanging():
        bringing = asyncio.create_task(delivery.deliver("d-1"))
        began = time.monotonic()
        await asyncio.sleep(0.01)
        assert time.monotonic() - began < PATIENCE
        with pytest.raises(Unreachable):
            await bringing
