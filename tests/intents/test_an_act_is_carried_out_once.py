"""The ledger: every write is a row first, is sent at most once at a time, and is proven by a look."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daytwo import repairs
from daytwo.domain.errors import Failed, Foreign, NotYet, Unclear
from daytwo.domain.seams import Act, ActKind, AlreadyDone, Command, Look, NotOurs, Outcome, Preparation
from daytwo.domain.vocabulary import Mark
from daytwo.intents import MAX_TRIES, SEND_SECONDS, Ledger
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, FreezeRow, IntentRow, NodeRow, RepairRow

START = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
REPAIR = "r-20261130-030000-aaaaa"


@dataclass
class Switchboard:
    """A target made of files: an act is done when its file is there; `log` counts the commands that ran."""

    root: Path
    settle_seconds: float = 5.0
    foreign: str = ""
    works: bool = True
    unclear: bool = False
    hangs: bool = False
    looks: list[str] = field(default_factory=list)

    async def prepare(self, act: Act) -> Preparation:
        if self.foreign:
            return NotOurs(found=self.foreign)
        if self.file(act).exists():
            return AlreadyDone(proof="it stands already")
        touch = f"touch {self.file(act)}" if self.works else "true"
        return Command(argv=("sh", "-c", f"echo {act.kind} >> {self.root}/log; {touch}"))

    async def look(self, act: Act) -> Look:
        self.looks.append(act.kind)
        if self.file(act).exists():
            return Look(outcome=Outcome.DONE, proof="seen", proof_type="scheduler-state")
        if self.hangs:
            return Look(outcome=Outcome.PENDING)
        return Look(outcome=Outcome.UNCLEAR if self.unclear else Outcome.NOT_DONE, proof="not there")

    def file(self, act: Act) -> Path:
        return self.root / f"{act.node}-{act.kind}"

    def sent(self) -> list[str]:
        log = self.root / "log"
        return log.read_text().split() if log.exists() else []


class Clock:
    """A time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def target(tmp_path: Path) -> Switchboard:
    return Switchboard(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(store: Store, target: Switchboard, clock: Clock) -> Ledger:
    with store.write() as session:
        node = NodeRow(cluster="east", name="n1", state_since=START)
        session.add(node)
        repairs.open_row(session, REPAIR, node, why="test", opened_by="policy", policy_revision=1, now=START)
    return Ledger(store, {"files": target}, clock=clock)


def an_act(kind: ActKind = ActKind.DRAIN) -> Act:
    return Act(kind=kind, cluster="east", node="n1", target="n1", mark=Mark(repair_id=REPAIR, text="test"))


def intent(store: Store, key: str = "k") -> IntentRow:
    with store.read() as session:
        return session.get_one(IntentRow, key)


async def test_an_act_is_sent_and_proven(ledger: Ledger, target: Switchboard, store: Store) -> None:
    look = await ledger.carry_out("k", "files", an_act())
    assert (look.proof, target.sent()) == ("seen", ["drain"])
    assert (intent(store).state, intent(store).open_node) == ("proven", None)


async def test_the_same_key_again_sends_nothing(ledger: Ledger, target: Switchboard) -> None:
    await ledger.carry_out("k", "files", an_act())
    await ledger.carry_out("k", "files", an_act())
    assert target.sent() == ["drain"]


async def test_an_act_is_proven_after_nobody_asks_for_it_any_more(
    ledger: Ledger, target: Switchboard, store: Store
) -> None:
    target.works, target.hangs = False, True
    with pytest.raises(NotYet):
        await ledger.carry_out("k", "files", an_act(ActKind.REQUEUE))
    target.file(an_act(ActKind.REQUEUE)).touch()
    await ledger.carry_on(REPAIR)
    assert (target.sent(), intent(store).state, intent(store).open_node) == (["requeue"], "proven", None)


async def test_ten_at_once_send_once(ledger: Ledger, target: Switchboard) -> None:
    results = await asyncio.gather(
        *(ledger.carry_out("k", "files", an_act()) for _ in range(10)), return_exceptions=True
    )
    assert target.sent() == ["drain"]
    assert {type(r) for r in results} <= {Look, NotYet}


async def test_what_stands_already_is_proven_unsent(ledger: Ledger, target: Switchboard) -> None:
    target.file(an_act()).touch()
    assert (await ledger.carry_out("k", "files", an_act())).proof == "it stands already"
    assert target.sent() == []


async def test_anothers_mark_is_left_alone(ledger: Ledger, target: Switchboard) -> None:
    target.foreign = "bob: burn-in"
    for _ in range(2):
        with pytest.raises(Foreign, match="burn-in"):
            await ledger.carry_out("k", "files", an_act())
    assert target.sent() == []


async def test_a_send_that_was_cut_off_is_looked_at_before_it_is_tried_again(
    ledger: Ledger, target: Switchboard, clock: Clock, store: Store
) -> None:
    await ledger.carry_out("k", "files", an_act())
    with store.write() as session:  # as a crash between the send and its proof leaves it
        row = session.get_one(IntentRow, "k")
        row.state, row.open_node = "sending", "east/n1"
    clock.forward(SEND_SECONDS + target.settle_seconds + 1)
    await ledger.carry_out("k", "files", an_act())
    assert target.sent() == ["drain"]


async def test_a_send_that_did_nothing_is_tried_again_only_after_settling(
    ledger: Ledger, target: Switchboard, clock: Clock
) -> None:
    target.works = False
    for _ in range(3):
        with pytest.raises(NotYet, match="under way"):
            await ledger.carry_out("k", "files", an_act())
    assert target.sent() == ["drain"]
    clock.forward(SEND_SECONDS + target.settle_seconds + 1)
    target.works = True
    with pytest.raises(NotYet, match="trying again"):
        await ledger.carry_out("k", "files", an_act())
    assert (await ledger.carry_out("k", "files", an_act())).outcome is Outcome.DONE
    assert target.sent() == ["drain", "drain"]


async def test_an_act_that_never_works_fails_after_its_tries(ledger: Ledger, target: Switchboard, clock: Clock) -> None:
    target.works = False

    async def until_it_is_over() -> None:
        for _ in range(20):
            clock.forward(SEND_SECONDS + target.settle_seconds + 1)
            with contextlib.suppress(NotYet):
                await ledger.carry_out("k", "files", an_act())

    with pytest.raises(Failed, match=f"{MAX_TRIES} tries"):
        await until_it_is_over()
    assert len(target.sent()) == MAX_TRIES


async def test_an_unclear_act_asks_a_person(ledger: Ledger, target: Switchboard, clock: Clock, store: Store) -> None:
    target.works, target.unclear = False, True
    with pytest.raises(NotYet):
        await ledger.carry_out("k", "files", an_act())
    clock.forward(SEND_SECONDS + target.settle_seconds + 1)
    with pytest.raises(Unclear, match="a person must look"):
        await ledger.carry_out("k", "files", an_act())
    assert (target.sent(), intent(store).open_node) == (["drain"], None)


async def test_a_pending_act_is_waited_for_without_end(ledger: Ledger, target: Switchboard, clock: Clock) -> None:
    target.works, target.hangs = False, True
    for _ in range(5):
        clock.forward(3600)
        with pytest.raises(NotYet, match="under way"):
            await ledger.carry_out("k", "files", an_act())
    assert target.sent() == ["drain"]


async def test_a_node_has_one_unresolved_act(ledger: Ledger, target: Switchboard) -> None:
    target.works, target.hangs = False, True
    with pytest.raises(NotYet):
        await ledger.carry_out("k", "files", an_act())
    with pytest.raises(NotYet, match="drain is under way"):
        await ledger.carry_out("other", "files", an_act(ActKind.REBOOT))
    assert target.sent() == ["drain"]


async def test_an_act_left_unresolved_by_its_own_repair_is_resolved_by_the_next_one(
    ledger: Ledger, target: Switchboard
) -> None:
    target.works, target.hangs = False, True
    with pytest.raises(NotYet):
        await ledger.carry_out("k", "files", an_act())
    target.file(an_act()).touch()  # it came true when nobody asked
    target.works = True
    with pytest.raises(NotYet, match="resolved only now"):
        await ledger.carry_out("other", "files", an_act(ActKind.REBOOT))
    assert (await ledger.carry_out("other", "files", an_act(ActKind.REBOOT))).outcome is Outcome.DONE
    assert target.sent() == ["drain", "reboot"]


async def test_an_act_of_another_repair_is_waited_for(ledger: Ledger, target: Switchboard) -> None:
    target.works, target.hangs = False, True
    with pytest.raises(NotYet):
        await ledger.carry_out("k", "files", an_act())
    theirs = an_act(ActKind.REBOOT).model_copy(update={"mark": Mark(repair_id="r-other", text="")})
    with pytest.raises(NotYet, match=f"an act of repair {REPAIR}"):
        await ledger.carry_out("other", "files", theirs)


async def test_what_is_given_up_no_longer_locks_the_node(ledger: Ledger, target: Switchboard) -> None:
    target.works, target.hangs = False, True
    with pytest.raises(NotYet):
        await ledger.carry_out("k", "files", an_act())
    ledger.give_up(REPAIR, "a person was asked")
    target.works = True
    await ledger.carry_out("other", "files", an_act(ActKind.REBOOT))
    assert target.sent() == ["drain", "reboot"]


@pytest.mark.parametrize("scope", ["*", "east", "east/n1"])
async def test_a_freeze_stops_an_act_that_has_not_begun(
    ledger: Ledger, target: Switchboard, store: Store, scope: str
) -> None:
    with store.write() as session:
        session.add(FreezeRow(scope=scope, reason="move of the rack", actor="cli:ann", at=START))
    with pytest.raises(NotYet, match="frozen by cli:ann: move of the rack"):
        await ledger.carry_out("k", "files", an_act())
    assert (target.sent(), intent(store).state) == ([], "intended")


@pytest.mark.parametrize("scope", ["west", "east/n2"])
async def test_a_freeze_elsewhere_stops_nothing(ledger: Ledger, target: Switchboard, store: Store, scope: str) -> None:
    with store.write() as session:
        session.add(FreezeRow(scope=scope, reason="elsewhere", actor="cli:ann", at=START))
    await ledger.carry_out("k", "files", an_act())
    assert target.sent() == ["drain"]


async def test_no_freeze_keeps_a_node_from_coming_back(ledger: Ledger, target: Switchboard, store: Store) -> None:
    with store.write() as session:
        session.add(FreezeRow(scope="*", reason="stop", actor="cli:ann", at=START))
    await ledger.carry_out("k", "files", an_act(ActKind.UNDRAIN))
    assert target.sent() == ["undrain"]


@pytest.mark.parametrize("kind", ["dismiss", "hold"])
async def test_a_stop_that_is_not_delivered_yet_stops_the_act(
    ledger: Ledger, target: Switchboard, store: Store, kind: str
) -> None:
    with store.write() as session:
        session.add(
            DecisionRow(
                id="d",
                request_id="d",
                repair_id=REPAIR,
                revision=1,
                kind=kind,
                actor="cli:ann",
                channel="cli",
                verified=True,
                at=START,
            )
        )
    with pytest.raises(NotYet, match=f"{kind} by cli:ann"):
        await ledger.carry_out("k", "files", an_act())
    assert target.sent() == []


async def test_a_closed_repair_sends_nothing(ledger: Ledger, target: Switchboard, store: Store) -> None:
    with store.write() as session:
        session.get_one(RepairRow, REPAIR).open_key = None
    with pytest.raises(NotYet, match="is not open"):
        await ledger.carry_out("k", "files", an_act())
    assert target.sent() == []
