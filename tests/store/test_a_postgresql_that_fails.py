"""PostgreSQL goes away, comes back, or undoes a transaction: callers try again, and nothing is half done."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlmodel import Session, select

from daytwo.domain.errors import TryAgain, Unreachable
from daytwo.store.engine import Store
from daytwo.store.failures import Collision
from daytwo.store.locks import lock_nodes
from daytwo.store.tables import NodeRow
from tests.postgres import Postgres
from tests.rows import a_node, keep
from tests.store.meeting import at_once

IMPATIENT = "&options=-c%20lock_timeout%3D200ms%20-c%20idle_in_transaction_session_timeout%3D200ms"


def names(store: Store) -> list[str]:
    with store.read() as session:
        return list(session.exec(select(NodeRow.name).order_by(NodeRow.name)))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["shut down", "crashed"])
def test_a_server_that_comes_back_is_used_again(postgres: Postgres, postgres_store: Store, how: int) -> None:
    assert names(postgres_store) == []
    postgres.stop(how)
    try:
        with pytest.raises(Unreachable, match="does not answer"):
            names(postgres_store)
        with pytest.raises(Unreachable):
            keep(postgres_store, a_node())
    finally:
        postgres.start()
    assert names(postgres_store) == []


def cut_off(store: Store, session: Session) -> None:
    """End the session's connection, as a restart of the server does."""
    pid = session.connection().execute(text("SELECT pg_backend_pid()")).scalar_one()
    with store.write() as other:
        other.connection().execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})


def test_a_connection_lost_in_the_middle_undoes_the_whole(postgres_store: Store) -> None:
    def work(session: Session) -> None:
        session.add(a_node())
        session.flush()
        cut_off(postgres_store, session)

    with pytest.raises(Unreachable):
        postgres_store.change(work)
    assert names(postgres_store) == []


def test_an_idle_connection_that_was_lost_is_not_noticed(postgres_store: Store) -> None:
    with postgres_store.read() as session, postgres_store.read() as other:
        pids = [each.connection().execute(text("SELECT pg_backend_pid()")).scalar_one() for each in (session, other)]
    with postgres_store.write() as session:
        end = text("SELECT pg_terminate_backend(pid) FROM unnest(:pids) AS pid WHERE pid <> pg_backend_pid()")
        session.connection().execute(end, {"pids": pids})
    assert [names(postgres_store) for _ in range(3)] == [[]] * 3


def crosswise(store: Store, number: int, met: threading.Barrier) -> None:
    """Lock two nodes, each thread in its own order; the first time both have one before they want the other."""
    first, second = ("gpu-07", "gpu-08")[:: 1 if number else -1]
    tries = iter([True])

    def work(session: Session) -> None:
        lock_nodes(session, "east", [first])
        if next(tries, False):
            met.wait(10)
        lock_nodes(session, "east", [second])[second].due += 1

    store.change(work)


def test_two_who_wait_for_each_other_are_both_done_in_the_end(postgres_store: Store) -> None:
    keep(postgres_store, a_node(), a_node("gpu-08"))
    met = threading.Barrier(2)
    at_once(2, lambda number: crosswise(postgres_store, number, met))
    with postgres_store.read() as session:
        assert session.exec(select(NodeRow.due)).all() == [1, 1]


def test_a_change_that_never_succeeds_is_given_up(postgres_store: Store) -> None:
    tries = []

    def work(_session: Session) -> None:
        tries.append(1)
        raise Collision("again")

    with pytest.raises(TryAgain):
        postgres_store.change(work)
    assert len(tries) == 5


@pytest.fixture
def impatient(postgres: Postgres) -> Iterator[Store]:
    """A store that waits for others for a fifth of a second."""
    with postgres.database() as url:
        store = Store(url + IMPATIENT)
        keep(store, a_node())
        yield store
        store.close()


def take(store: Store) -> None:
    with store.write() as session:
        lock_nodes(session, "east")


def test_who_waits_for_too_long_is_told_to_try_again(impatient: Store) -> None:
    patient = Store(impatient.url.removesuffix(IMPATIENT))
    with patient.write() as session:
        lock_nodes(session, "east")
        with pytest.raises(TryAgain, match="in the way for too long"):
            take(impatient)
    patient.close()


def test_a_writer_that_pauses_in_its_transaction_loses_it(impatient: Store) -> None:
    def work(session: Session) -> None:
        lock_nodes(session, "east")["gpu-07"].state_why = "late"
        session.flush()
        time.sleep(0.5)

    with pytest.raises(Unreachable):
        impatient.change(work)
    take(impatient)
    with impatient.read() as session:
        assert session.exec(select(NodeRow.state_why)).one() == ""


def test_an_error_does_not_tell_the_password() -> None:
    store = Store("postgresql+psycopg://daytwo:hush@127.0.0.1:9/daytwo")
    with pytest.raises(Unreachable) as told:
        names(store)
    assert "hush" not in str(told.value)
