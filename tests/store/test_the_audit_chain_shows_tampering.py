"""The audit chain is edited here as an attacker would: with SQL."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from daytwo.store import audit
from daytwo.store.engine import Store
from tests.builders import NOW


def write_rows(store: Store, count: int = 5) -> None:
    for number in range(1, count + 1):
        with store.write() as session:
            now = NOW + timedelta(seconds=number)
            audit.append(session, "cli:alice", "approve", f"r-{number}", data={"revision": number, "b": 1.5}, now=now)


def run_sql(store: Store, *statements: str) -> None:
    with store.write() as session:
        for statement in statements:
            session.connection().execute(text(statement))


def verdict(store: Store) -> audit.AuditReport:
    with store.read() as session:
        return audit.verify(session)


@pytest.fixture
def chain(store: Store) -> Store:
    write_rows(store)
    return store


def test_an_untouched_chain_is_whole(chain: Store) -> None:
    found = verdict(chain)
    assert (found.ok, found.count, found.bad_number) == (True, 5, None)


def test_an_empty_chain_is_whole(store: Store) -> None:
    assert verdict(store).ok


SWAP = (
    "UPDATE audit SET number = 99 WHERE number = 2",
    "UPDATE audit SET number = 2 WHERE number = 3",
    "UPDATE audit SET number = 3 WHERE number = 99",
)
COPY = (
    "INSERT INTO audit (number, at, actor, act, subject, data, previous, hash)"
    " SELECT 6, at, actor, act, subject, data, hash, 'forged' FROM audit WHERE number = 5"
)


@pytest.mark.parametrize(
    ("statements", "number", "says"),
    [
        (("UPDATE audit SET actor = 'cli:bob' WHERE number = 3",), 3, "changed"),
        (("UPDATE audit SET data = '{}' WHERE number = 1",), 1, "changed"),
        (("UPDATE audit SET at = '2020-01-01 00:00:00.000000' WHERE number = 4",), 4, "changed"),
        (("DELETE FROM audit WHERE number = 3",), 3, "missing"),
        (("DELETE FROM audit WHERE number = 1",), 1, "missing"),
        (SWAP, 2, "does not follow"),
        (("DELETE FROM audit WHERE number >= 4",), 4, "missing"),
        (("DELETE FROM audit",), 1, "missing"),
        ((COPY,), 6, "changed"),
        (("DELETE FROM audit_heads",), 1, "past the recorded end"),
        (("UPDATE audit_heads SET head = 'forged'",), 5, "not the recorded head"),
    ],
)
def test_what_was_done_to_the_chain_is_named(chain: Store, statements: tuple[str, ...], number: int, says: str) -> None:
    run_sql(chain, *statements)
    found = verdict(chain)
    assert (found.ok, found.bad_number) == (False, number)
    assert says in found.problem


def test_a_chain_rewritten_from_a_row_on_does_not_fit_the_head(chain: Store) -> None:
    run_sql(chain, "DELETE FROM audit WHERE number >= 5", "UPDATE audit_heads SET count = 4")
    found = verdict(chain)
    assert (found.ok, found.bad_number) == (False, 4)


def test_many_writers_at_once_make_one_whole_chain(store: Store) -> None:
    start = threading.Barrier(6)

    def writer(_: int) -> None:
        start.wait()
        write_rows(store, 5)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(writer, range(6)))
    found = verdict(store)
    assert (found.ok, found.count) == (True, 30)


def test_a_row_that_is_rolled_back_leaves_the_chain_whole(chain: Store) -> None:
    with chain.write() as session:
        audit.append(session, "cli:alice", "approve", "r-6", now=NOW)
        session.rollback()
    assert (verdict(chain).ok, verdict(chain).count) == (True, 5)


def test_data_that_is_not_json_is_refused(store: Store) -> None:
    with pytest.raises(TypeError), store.write() as session:
        audit.append(session, "cli:alice", "approve", "r-1", data={"at": NOW}, now=NOW)
