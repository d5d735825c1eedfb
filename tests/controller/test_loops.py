"""Leases and loops: one holder at a time, a loser writes nothing, a crash is no end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlmodel import select

from daytwo.controller.leases import Lease, LeaseLost, Sight, acquire, guarded, release, renew
from daytwo.controller.loops import Clock, Supervisor, every, holder_name
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow, LeaseRow

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=16)


def take(store: Store, holder: str, now: datetime = NOW) -> Lease | None:
    return acquire(store, "reconcile", holder, now=now, seconds=15)


def taken(store: Store, holder: str, now: datetime = NOW) -> Lease:
    lease = take(store, holder, now)
    assert lease is not None
    return lease


def write(store: Store, lease: Lease) -> None:
    """What a loop does: something, under its lease."""
    with store.write() as session:
        guarded(session, lease)
        session.add(FreezeRow(scope=lease.holder, reason="", actor="", at=NOW))


def written(store: Store) -> list[str]:
    with store.read() as session:
        return [row.scope for row in session.exec(select(FreezeRow).order_by(FreezeRow.id))]


def test_a_lease_has_one_holder(store: Store) -> None:
    taken(store, "a")
    assert take(store, "b") is None


@pytest.mark.parametrize(("seconds", "free"), [(14, False), (15, True)])
def test_a_lease_that_is_not_renewed_ends(store: Store, seconds: float, free: bool) -> None:
    taken(store, "a")
    assert (take(store, "b", NOW + timedelta(seconds=seconds)) is not None) is free


def test_a_renewed_lease_goes_on(store: Store) -> None:
    lease = taken(store, "a")
    renew(store, lease, now=NOW + timedelta(seconds=10), seconds=15)
    assert take(store, "b", LATER) is None


def test_a_lease_given_back_is_free_at_once(store: Store) -> None:
    release(store, taken(store, "a"), now=NOW)
    assert taken(store, "b").epoch == 2


def test_each_holder_has_a_higher_epoch(store: Store) -> None:
    assert [taken(store, holder, LATER).epoch for holder in ("a", "a", "a")] == [1, 2, 3]


def test_a_holder_that_was_paused_writes_nothing(store: Store) -> None:
    paused = taken(store, "a")
    write(store, taken(store, "b", LATER))
    with pytest.raises(LeaseLost):
        write(store, paused)
    assert written(store) == ["b"]


def test_a_holder_that_was_paused_cannot_renew_or_end_the_new_lease(store: Store) -> None:
    paused = taken(store, "a")
    taken(store, "b", LATER)
    with pytest.raises(LeaseLost):
        renew(store, paused, now=LATER, seconds=15)
    release(store, paused, now=LATER)
    assert take(store, "c", LATER) is None


def test_an_unknown_lease_guards_too(store: Store) -> None:
    with pytest.raises(LeaseLost):
        write(store, Lease("never-taken", "a", 1))


def test_no_two_processes_have_one_name() -> None:
    assert holder_name() != holder_name()


class Running:
    """Supervisors on one store, quick ones, and what their loops did."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.stop = asyncio.Event()
        self.now: dict[str, set[str]] = {}
        self.most = 0
        self.began: list[str] = []

    def supervisor(self, holder: str, *, crashes: int = 0, how: type[BaseException] = ValueError) -> Supervisor:
        clock = Clock(sleep=lambda seconds: asyncio.sleep(min(seconds, 0.02)), jitter=lambda: 1.0)
        supervisor = Supervisor(self.store, holder=holder, lease_seconds=0.5, clock=clock)
        left = [crashes]

        async def loop(lease: Lease) -> None:
            self.began.append(lease.holder)
            if left[0]:
                left[0] -= 1
                raise how("a bug")
            await self._hold(lease)

        supervisor.add("reconcile", loop)
        return supervisor

    async def _hold(self, lease: Lease) -> None:
        holders = self.now.setdefault(lease.name, set())
        holders.add(lease.holder)
        self.most = max(self.most, len(holders))
        try:
            await asyncio.Event().wait()
        finally:
            holders.discard(lease.holder)

    def runs(self, holder: str) -> bool:
        return holder in self.now.get("reconcile", ())

    async def until(self, holder: str, *, runs: bool = True) -> None:
        for _ in range(1000):
            if self.runs(holder) is runs:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{holder} still {'does not run' if runs else 'runs'}")


@pytest.fixture
def running(store: Store) -> Running:
    return Running(store)


async def test_two_controllers_run_a_loop_once(running: Running) -> None:
    first = asyncio.create_task(running.supervisor("a").run(running.stop))
    await running.until("a")
    second = asyncio.create_task(running.supervisor("b").run(running.stop))
    await asyncio.sleep(0.3)
    assert running.began == ["a"]
    running.stop.set()
    await asyncio.gather(first, second)


async def test_the_other_controller_goes_on_when_one_ends(running: Running) -> None:
    ends = asyncio.Event()
    first = asyncio.create_task(running.supervisor("a").run(ends))
    await running.until("a")
    second = asyncio.create_task(running.supervisor("b").run(running.stop))
    ends.set()
    await first
    await running.until("b")
    assert running.most == 1
    running.stop.set()
    await second


async def test_a_loop_that_crashes_is_started_again(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(running.supervisor("a", crashes=2).run(running.stop))
    await running.until("a")
    assert (len(running.began), caplog.text.count("loop reconcile crashed")) == (3, 2)
    running.stop.set()
    await task


async def test_a_loop_that_is_cancelled_from_within_is_started_again(running: Running) -> None:
    task = asyncio.create_task(running.supervisor("a", crashes=2, how=asyncio.CancelledError).run(running.stop))
    await running.until("a")
    assert len(running.began) == 3
    running.stop.set()
    await task


async def test_a_loop_whose_lease_is_taken_ends(running: Running) -> None:
    task = asyncio.create_task(running.supervisor("a").run(running.stop))
    await running.until("a")
    taken(running.store, "thief", datetime.now(UTC) + timedelta(hours=1))
    await running.until("a", runs=False)
    running.stop.set()
    await task


async def test_a_lease_is_renewed_while_everybody_else_waits_for_the_store(running: Running) -> None:
    task = asyncio.create_task(running.supervisor("a").run(running.stop))
    await running.until("a")
    answers = threading.Event()
    waiting = [asyncio.ensure_future(asyncio.to_thread(answers.wait, 10)) for _ in range(64)]
    await asyncio.sleep(1.0)
    with running.store.read() as session:
        ends = session.exec(select(LeaseRow.expires_at).where(LeaseRow.name == "reconcile")).one()
    answers.set()
    running.stop.set()
    await asyncio.gather(task, *waiting)
    assert ends > datetime.now(UTC) - timedelta(seconds=0.5)


async def test_steps_wait_between_each_other() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise EOFError

    async def step() -> None:
        pass

    with pytest.raises(EOFError):
        await every(5, step, clock=Clock(sleep=sleep, jitter=lambda: 1.0), lease=Lease("a", "me", 1))
    assert slept == [5, 5, 5]


CONTROLLER = """
import asyncio, os, signal, sys
from datetime import UTC, datetime
from daytwo.controller.loops import Supervisor
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow, LeaseRow

store, holder = Store(sys.argv[1]), sys.argv[2]

def write(lease):
    with store.write() as session:
        lease.guard(session)
        session.add(FreezeRow(scope=holder, reason=str(lease.epoch), actor="", at=datetime.now(UTC)))

async def loop(lease):
    while True:
        await asyncio.to_thread(write, lease)
        if sys.argv[3:] == ["pause"]:
            os.kill(os.getpid(), signal.SIGSTOP)
        await asyncio.sleep(0.01)

supervisor = Supervisor(store, holder=holder, lease_seconds=1.0)
supervisor.add("reconcile", loop)
asyncio.run(supervisor.run(asyncio.Event()))
"""


class Processes:
    """Real controllers on one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, holder: str, *words: str) -> None:
        """Start a controller that writes its name under its lease, for ever or until it pauses itself."""
        command = [sys.executable, "-c", CONTROLLER, self.store.url, holder, *words]
        self.started[holder] = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)

    def wait_for(self, holder: str) -> None:
        deadline = time.monotonic() + 30
        while written(self.store)[-1:] != [holder]:
            assert time.monotonic() < deadline, f"{holder} never wrote"
            time.sleep(0.05)


@pytest.fixture
def processes(store: Store) -> Iterator[Processes]:
    given = Processes(store)
    yield given
    for process in given.started.values():
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_a_controller_that_wakes_up_late_changes_nothing(processes: Processes) -> None:
    processes.start("a", "pause")
    processes.wait_for("a")
    processes.start("b")
    processes.wait_for("b")
    os.kill(processes.started["a"].pid, signal.SIGCONT)
    time.sleep(0.5)
    assert written(processes.store).count("a") == 1


class Monotonic:
    """A process's own count of seconds, and its wall clock beside it."""

    def __init__(self, ahead: timedelta = timedelta(0)) -> None:
        self.seconds, self.ahead = 0.0, ahead
        self.sight = Sight(lambda: self.seconds)

    def take(self, store: Store, holder: str, *, after: float = 0.0) -> Lease | None:
        self.seconds += after
        now = NOW + timedelta(seconds=self.seconds) + self.ahead
        return acquire(store, "reconcile", holder, now=now, seconds=15, sight=self.sight)


AHEAD = NOW + timedelta(hours=1)


def test_a_lease_written_by_a_clock_that_is_ahead_ends_when_nobody_renews_it(store: Store) -> None:
    taken(store, "ahead", AHEAD)
    waits = Monotonic()
    assert [waits.take(store, "b", after=seconds) is not None for seconds in (0, 5, 5, 4, 1)] == [False] * 4 + [True]


def test_a_lease_that_a_clock_ahead_of_ours_renews_is_never_taken(store: Store) -> None:
    lease, waits = taken(store, "ahead", AHEAD), Monotonic()
    for seconds in range(5, 120, 5):
        renew(store, lease, now=AHEAD + timedelta(seconds=seconds), seconds=15)
        assert waits.take(store, "b", after=5) is None


def test_who_took_an_abandoned_lease_shuts_out_the_one_that_wakes_up(store: Store) -> None:
    paused, waits = taken(store, "ahead", AHEAD), Monotonic()
    waits.take(store, "b")
    lease = waits.take(store, "b", after=15)
    assert lease is not None
    with pytest.raises(LeaseLost):
        write(store, paused)
    write(store, lease)


def test_of_two_that_wait_for_an_abandoned_lease_one_gets_it(store: Store) -> None:
    taken(store, "ahead", AHEAD)
    first, second = Monotonic(), Monotonic()
    for each in (first, second):
        each.take(store, "b")
    got = [each.take(store, name, after=15) for each, name in ((first, "b"), (second, "c"))]
    assert [lease is not None for lease in got] == [True, False]


async def test_a_controller_follows_one_that_died_with_its_clock_an_hour_ahead(running: Running) -> None:
    taken(running.store, "ahead", datetime.now(UTC) + timedelta(hours=1))
    task = asyncio.create_task(running.supervisor("b").run(running.stop))
    await running.until("b")
    running.stop.set()
    await task
