"""`daytwo nodes quiesce`: asked, waited for, and told as the agent said it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlmodel import select

from daytwo import node_requests
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRequestRow, NodeRow
from tests.cli.conftest import Cli


@contextmanager
def an_agent(fleet: Store, **result: Any) -> Iterator[None]:
    """An agent that answers the first thing it is asked."""

    def live() -> None:
        while not answer():
            time.sleep(0.02)

    def answer() -> bool:
        now = datetime.now(UTC)
        with fleet.write() as session:
            node = session.get_one(NodeRow, ("east", "gpu-07"))
            node.boot_id = "boot-1"
            asked = node_requests.offer(session, node, now=now)
            said: list[Any] = [{"id": a["id"], "state": "done", "boot_id": "boot-1", "result": result} for a in asked]
            node_requests.answer(session, node, said, now=now)
        return bool(asked)

    thread = threading.Thread(target=live)
    thread.start()
    yield
    thread.join(10)


ASK = ("nodes", "quiesce", "gpu-07", "--for", "10m", "--reason", "a new driver")


QUIET = "east/gpu-07: its agent holds no GPU for 10m"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"let_go": True, "holders": []}, f"{QUIET}\n"),
        (
            {"let_go": True, "holders": ["dcgm (7)"]},
            f"{QUIET}; others hold a GPU: dcgm (7)\n",
        ),
        ({"let_go": False, "error": "it hangs"}, "east/gpu-07: not let go: it hangs\n"),
    ],
)
def test_what_the_agent_said_is_told(cli: Cli, fleet: Store, result: dict[str, Any], said: str) -> None:
    with an_agent(fleet, **result):
        ran = cli(*ASK)
    assert (ran.code, ran.out) == (0, said), ran.err
    with fleet.read() as session:
        assert session.exec(select(NodeRequestRow)).one().arguments == {"seconds": 600}


def test_a_time_that_is_too_long_is_refused(cli: Cli) -> None:
    ran = cli("nodes", "quiesce", "gpu-07", "--for", "2h", "--reason", "x")
    assert (ran.code, "'--for': found '2h'" in ran.err) == (2, True), ran.err


def test_which_kernel_log_the_agent_reads_is_shown(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).kernel_log = "journal"
    assert "kernel log from journal" in cli("nodes", "show", "gpu-07").out
