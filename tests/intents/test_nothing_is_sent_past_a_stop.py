"""A stop that is being written while an act is about to be sent: the act waits for it, and is not sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from sqlmodel import Session

from daytwo import repairs
from daytwo.domain.errors import NotYet
from daytwo.domain.seams import Act, ActKind, Command, Look, Outcome, Preparation
from daytwo.domain.vocabulary import Channel, Mark
from daytwo.intents import Ledger
from daytwo.service import freezes
from daytwo.service.decisions import Identity
from daytwo.store import locks
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, FreezeRow, IntentRow, NodeRow, RepairRow
from tests.store.meeting import while_open

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
REPAIR = "r-20261130-030000-aaaaa"
ACT = Act(kind=ActKind.DRAIN, cluster="east", node="n1", target="n1", mark=Mark(repair_id=REPAIR, text="test"))


@dataclass
class Nothing:
    """A target that is sent a command which does nothing."""

    settle_seconds: float = 5.0

    async def prepare(self, act: Act) -> Preparation:
        return Command(argv=("true",))

    async def look(self, act: Act) -> Look:
        return Look(outcome=Outcome.DONE, proof="seen")


class LastLook:
    """Carries the act out, and says when its last look begins. On SQLite that waits for the open transaction."""

    def __init__(self, store: Store) -> None:
        self.begins = threading.Event()
        self._waits = store.engine.dialect.name == "sqlite"

    def carry_out(self, ledger: Ledger) -> Look:
        if self._waits:
            self.begins.set()
        return asyncio.run(ledger.carry_out("k", "nothing", ACT, guard=self._guard))

    def _guard(self, session: Session) -> None:
        if session.get(IntentRow, "k"):
            self.begins.set()


@pytest.fixture
def ledger(store: Store) -> Ledger:
    with store.write() as session:
        node = NodeRow(cluster="east", name="n1", state_since=NOW)
        session.add(node)
        repairs.open_row(session, REPAIR, node, why="test", opened_by="policy", policy_revision=1, now=NOW)
    return Ledger(store, {"nothing": Nothing()})


def freezing(session: Session) -> None:
    """What `daytwo freeze` does, in a transaction that stays open."""
    locks.hold(session, locks.Lock.FREEZES)
    session.add(FreezeRow(scope="*", reason="the power is being worked on", actor="cli:alice", at=NOW))


def dismissing(session: Session) -> None:
    """What `daytwo repairs dismiss` does, in a transaction that stays open."""
    session.get_one(RepairRow, REPAIR, with_for_update=True)
    made = {"kind": "dismiss", "actor": "cli:alice", "channel": "cli", "verified": True, "at": NOW}
    session.add(DecisionRow(id="d-1", request_id="request-1", repair_id=REPAIR, revision=0, **made))


def closing(session: Session) -> None:
    session.get_one(RepairRow, REPAIR, with_for_update=True).open_key = None


@pytest.mark.parametrize(
    ("stop", "says"), [(freezing, "frozen by"), (dismissing, "dismiss by"), (closing, "is not open")]
)
def test_a_stop_that_is_being_written_is_heeded(
    store: Store, ledger: Ledger, stop: Callable[[Session], None], says: str
) -> None:
    looks = LastLook(store)
    with (
        while_open(store, stop, lambda: looks.carry_out(ledger), there=looks.begins) as sending,
        pytest.raises(NotYet, match=says),
    ):
        sending.result()
    with store.read() as session:
        assert session.get_one(IntentRow, "k").tries == 0


def test_a_freeze_is_not_written_while_an_act_has_its_last_look(store: Store) -> None:
    alice = Identity("cli:alice", Channel.CLI, True)
    with while_open(
        store,
        lambda session: locks.hold(session, locks.Lock.FREEZES, shared=True),
        lambda: freezes.freeze(store, alice, "*", reason="test", now=NOW),
    ) as freezing_too:
        assert freezing_too.waited


@dataclass
class Overtaken(Nothing):
    """While somebody looks whether the first try happened, somebody else sends the second."""

    settle_seconds: float = -1000.0
    store: Store | None = None

    async def look(self, act: Act) -> Look:
        assert self.store
        with self.store.write() as session:
            row = session.get_one(IntentRow, "k")
            row.state, row.tries = "sending", 2
        return Look(outcome=Outcome.NOT_DONE, proof="not there")


async def test_a_look_at_one_try_does_not_send_again_after_the_next(store: Store, ledger: Ledger) -> None:
    overtaken = Ledger(store, {"nothing": Overtaken(store=store)})
    with pytest.raises(NotYet):
        await overtaken.carry_out("k", "nothing", ACT)
    with store.read() as session:
        row = session.get_one(IntentRow, "k")
    assert (row.state, row.tries) == ("sending", 2)
