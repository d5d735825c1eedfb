"""A process is stopped as it sends, another carries its act out, and the first wakes up: the node boots once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from daytwo import repairs
from daytwo.domain.seams import Act, ActKind
from daytwo.domain.vocabulary import Mark
from daytwo.hardware.simulated import SimulatedHardware
from daytwo.intents import Ledger
from daytwo.lab.client import LabClient
from daytwo.schedulers.simulated import SimulatedScheduler
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, NodeRow
from tests.crashes.carry_out import KEY
from tests.crashes.living import SEND_SECONDS, locked
from tests.crashes.processes import Process, children_of, spin
from tests.workflows.plane import SPEED, wait_for

NODE, REPAIR = "node-02", "r-20261130-030000-aaaaa"
ARMED_SECONDS = 0.5
"""After which a sender has started, armed its alarm and waits for the word."""
ACT = Act(kind=ActKind.REBOOT, cluster="sim", node=NODE, target=NODE, mark=Mark(repair_id=REPAIR, text="test"))


@dataclass
class Bench:
    """A fleet without agents, a store, and two processes that want to boot the same node for the same repair."""

    root: Path
    store: Store
    first: Process
    second: Process

    def intent(self) -> IntentRow | None:
        with self.store.read() as session:
            return session.get(IntentRow, KEY)

    def in_state(self, *states: str) -> bool:
        row = self.intent()
        return row is not None and row.state in states

    def reboots(self) -> int:
        transport = httpx.HTTPTransport(uds=str(self.root / "lab.sock"), verify=False)
        with httpx.Client(transport=transport, base_url="http://lab") as client:
            entries = client.get("/acts/log").json()
        return sum(entry["order"]["kind"] == "reboot" and entry["result"] == "done" for entry in entries)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    with ExitStack() as stack:
        socket = await asyncio.to_thread(a_lab, stack, tmp_path)
        store = Store(f"sqlite:///{tmp_path}/daytwo.db")
        stack.callback(store.close)
        store.migrate()
        order = await a_drained_node(store, socket)
        env = {**os.environ, "DAYTWO_SEND_SECONDS": str(SEND_SECONDS)}
        names = ("first", "second")
        pair = [Process("tests.crashes.carry_out", env, tmp_path / name, [store.url, socket, order]) for name in names]
        for process in pair:
            stack.callback(process.end)
        yield Bench(tmp_path, store, *pair)


def a_lab(stack: ExitStack, root: Path) -> str:
    """A fleet of two nodes; nothing runs on the second."""
    socket = root / "lab.sock"
    options = ["--socket", socket, "--nodes", 2, "--speed", SPEED, "--no-agents"]
    lab = Process("daytwo.lab", os.environ, root / "lab.log", options)
    stack.callback(lab.end)
    lab.start()
    wait_for(lambda: LabClient(str(socket)).status() is not None, "the lab")
    return str(socket)


async def a_drained_node(store: Store, socket: str) -> str:
    """Write our marks, as a repair does before it acts; returns the order to boot, as JSON."""
    now = datetime.now(UTC)
    with store.write() as session:
        node = NodeRow(cluster="sim", name=NODE, state_since=now)
        session.add(node)
        repairs.open_row(session, REPAIR, node, why="test", opened_by="policy", policy_revision=1, now=now)
    scheduler = SimulatedScheduler(socket, "sim")
    ledger = Ledger(store, {"scheduler": scheduler})
    for act in scheduler.quarantine_acts("sim", NODE, ACT.mark):
        await ledger.carry_out(act.kind, "scheduler", act)
    return (await SimulatedHardware(socket, "sim").baseline(ACT)).model_dump_json()


def pause_before_the_last_look(bench: Bench) -> None:
    """The last look is a write: while the store is locked, the sender is armed and nobody gives it the word."""
    spin(lambda: bench.in_state("intended"), "the act is intended")
    with locked(bench.root / "daytwo.db"):
        spin(lambda: children_of(bench.first.pid), "a sender is armed", SEND_SECONDS)
        bench.first.pause()


def pause_after_the_last_look(bench: Bench) -> None:
    """The sender is stopped before it can read the word, and then whoever gave it."""
    spin(lambda: bench.in_state("intended"), "the act is intended")
    with locked(bench.root / "daytwo.db"):
        spin(lambda: children_of(bench.first.pid), "a sender is there", SEND_SECONDS)
        time.sleep(ARMED_SECONDS)
        os.kill(children_of(bench.first.pid)[0], signal.SIGSTOP)
    spin(lambda: bench.in_state("sending"), "the word was given")
    bench.first.pause()


@pytest.mark.parametrize("pause", [pause_before_the_last_look, pause_after_the_last_look])
async def test_a_sender_that_wakes_up_after_another_has_acted_sends_nothing(
    bench: Bench, pause: Callable[[Bench], None]
) -> None:
    bench.first.start()
    await asyncio.to_thread(pause, bench)
    bench.second.start()
    assert await asyncio.to_thread(bench.second.exit_code) == 0, bench.second.told()
    bench.first.go_on()
    assert await asyncio.to_thread(bench.first.exit_code) == 0, bench.first.told()
    assert bench.reboots() == 1
