"""An act that was intended and stopped before it was sent: whoever comes next on the node does not send it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from daytwo import repairs
from daytwo.domain.errors import DaytwoError, NotYet
from daytwo.domain.seams import Act, ActKind
from daytwo.domain.vocabulary import Mark
from daytwo.intents import Ledger
from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow, NodeRow, RepairRow
from tests.intents.test_an_act_is_carried_out_once import REPAIR, START, Clock, Switchboard


@pytest.fixture
def target(tmp_path: Path) -> Switchboard:
    return Switchboard(tmp_path)


@pytest.fixture
def ledger(store: Store, target: Switchboard) -> Ledger:
    with store.write() as session:
        node = NodeRow(cluster="east", name="n1", state_since=START)
        session.add(node)
        repairs.open_row(session, REPAIR, node, why="test", opened_by="policy", policy_revision=1, now=START)
    return Ledger(store, {"files": target}, clock=Clock())


def an_act(kind: ActKind, target: str = "n1") -> Act:
    return Act(kind=kind, cluster="east", node="n1", target=target, mark=Mark(repair_id=REPAIR, text="test"))


def in_state(store: Store, state: str, **fields: object) -> None:
    with store.write() as session:
        row = session.get_one(RepairRow, REPAIR)
        row.state = state
        for name, value in fields.items():
            setattr(row, name, value)


async def frozen_while_intended(ledger: Ledger, store: Store, kind: ActKind) -> None:
    """The act is a row and is stopped by a freeze, which then ends."""
    with store.write() as session:
        session.add(FreezeRow(scope="*", reason="power", actor="cli:ann", at=START))
    with pytest.raises(NotYet, match="frozen"):
        await ledger.carry_out("act", "files", an_act(kind))
    with store.write() as session:
        session.get_one(FreezeRow, 1).thawed_at = START


async def tried(ledger: Ledger, key: str, act: Act) -> None:
    for _ in range(4):
        with contextlib.suppress(DaytwoError):
            await ledger.carry_out(key, "files", act)


async def test_a_requeue_that_was_stopped_is_not_sent_by_the_lift_after_a_dismissal(
    ledger: Ledger, target: Switchboard, store: Store
) -> None:
    in_state(store, "draining")
    await frozen_while_intended(ledger, store, ActKind.REQUEUE)
    await tried(ledger, "lift", an_act(ActKind.UNDRAIN))
    assert target.sent() == ["undrain"]


async def test_a_node_comes_back_although_an_act_of_its_repair_is_frozen(
    ledger: Ledger, target: Switchboard, store: Store
) -> None:
    in_state(store, "quarantining")
    await frozen_while_intended(ledger, store, ActKind.DRAIN)
    with store.write() as session:
        session.add(FreezeRow(scope="east", reason="power", actor="cli:ann", at=START))
    await tried(ledger, "lift", an_act(ActKind.UNRESERVE))
    assert target.sent() == ["unreserve"]


NEXT = "r-20261130-040000-bbbbb"


def is_over(store: Store) -> None:
    """The repair was dismissed, and the next one of the node is open."""
    in_state(store, "dismissed", open_key=None)
    with store.write() as session:
        node = session.get_one(NodeRow, ("east", "n1"))
        repairs.open_row(session, NEXT, node, why="test", opened_by="policy", policy_revision=1, now=START)


async def test_what_a_repair_has_left_unsent_does_not_keep_the_next_one_from_acting(
    ledger: Ledger, target: Switchboard, store: Store
) -> None:
    in_state(store, "proposed")
    await frozen_while_intended(ledger, store, ActKind.RESERVE)
    is_over(store)
    theirs = an_act(ActKind.DRAIN).model_copy(update={"mark": Mark(repair_id=NEXT, text="test")})
    await tried(ledger, "theirs", theirs)
    assert target.sent() == ["drain"]


async def test_what_a_repair_has_left_unsent_is_given_up_once_it_is_over(
    ledger: Ledger, target: Switchboard, store: Store
) -> None:
    in_state(store, "proposed")
    await frozen_while_intended(ledger, store, ActKind.RESERVE)
    is_over(store)
    with pytest.raises(NotYet, match="is not open"):
        await ledger.carry_on(REPAIR)
    await ledger.carry_on(REPAIR)  # there is nothing left
    assert target.sent() == []


async def test_what_a_repair_has_sent_is_proven_for_the_next_one(
    ledger: Ledger, target: Switchboard, store: Store
) -> None:
    in_state(store, "proposed")
    target.works, target.hangs = False, True
    with pytest.raises(NotYet, match="under way"):
        await ledger.carry_out("act", "files", an_act(ActKind.RESERVE))
    is_over(store)
    target.works, target.hangs = True, False
    target.file(an_act(ActKind.RESERVE)).touch()
    theirs = an_act(ActKind.DRAIN).model_copy(update={"mark": Mark(repair_id=NEXT, text="test")})
    await tried(ledger, "theirs", theirs)
    assert target.sent() == ["reserve", "drain"]


@pytest.mark.parametrize("kind", [ActKind.REBOOT, ActKind.POWER_CYCLE, ActKind.REQUEUE])
async def test_an_act_that_was_stopped_is_not_sent_by_the_marks_for_the_tests(
    ledger: Ledger, target: Switchboard, store: Store, kind: ActKind
) -> None:
    in_state(store, "acting" if kind is not ActKind.REQUEUE else "draining")
    await frozen_while_intended(ledger, store, kind)
    in_state(store, "verifying")
    await tried(ledger, "mark", an_act(ActKind.RESERVE))
    assert target.sent() == ["reserve"]


@pytest.mark.parametrize(
    ("kind", "state", "disturbed"),
    [
        (ActKind.REBOOT, "needs-help", True),
        (ActKind.REBOOT, "verifying", True),
        (ActKind.POWER_CYCLE, "proposed", True),
        (ActKind.REQUEUE, "held", False),
        (ActKind.REQUEUE, "waiting", False),
        (ActKind.UNDRAIN, "proposed", True),
        (ActKind.UNRESERVE, "needs-help", True),
    ],
)
async def test_a_worker_that_wakes_late_sends_nothing_for_a_state_that_is_over(
    ledger: Ledger, target: Switchboard, store: Store, kind: ActKind, state: str, disturbed: bool
) -> None:
    in_state(store, state, disturbed=disturbed)
    with pytest.raises(NotYet, match=f"is {state}"):
        await ledger.carry_out("late", "files", an_act(kind))
    assert target.sent() == []


@pytest.mark.parametrize("kind", [ActKind.REBOOT, ActKind.POWER_CYCLE, ActKind.REQUEUE])
async def test_what_a_repair_is_about_to_do_is_not_given_up_for_a_containment(
    ledger: Ledger, target: Switchboard, store: Store, kind: ActKind
) -> None:
    in_state(store, "acting" if kind is not ActKind.REQUEUE else "draining")
    await frozen_while_intended(ledger, store, kind)
    with pytest.raises(NotYet, match=f"its repair is about to {kind}"):
        await ledger.carry_out("contain", "files", an_act(ActKind.RESERVE), overtakes=False)
    await tried(ledger, "act", an_act(kind))
    assert target.sent() == [kind]
