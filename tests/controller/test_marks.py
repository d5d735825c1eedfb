"""operations.md, rule 20: our marks on nodes are compared with what stands behind them, and never fought over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import col, select, update

from daytwo.controller.marks import Marks
from daytwo.controller.reconcile import CONTAINED_IN
from daytwo.domain.errors import NotYet
from daytwo.domain.ids import new_id
from daytwo.domain.vocabulary import FindingStatus, Mark, State
from daytwo.intake.hands import OF_HANDS
from daytwo.intents import Ledger
from daytwo.lab.acts import Order
from daytwo.lab.definition import CLUSTER
from daytwo.store.tables import FindingRow, RepairRow
from tests.storms.rig import Rig, a_rig

NODE = "node-05"


@pytest.fixture
async def rig(migrated_file: Path) -> AsyncIterator[Rig]:
    async with a_rig(migrated_file, nodes=12) as small:
        yield small


async def contained(rig: Rig) -> str:
    """A repair that is proposed, on a node that is contained; returns its id."""
    rig.broken([NODE])
    await rig.steps(0.5, 2)
    repair = rig.repair_ids()[NODE]
    change(rig, repair, state=State.PROPOSED)
    return repair


def change(rig: Rig, repair: str, **values: Any) -> None:
    """What the workflow would write."""
    with rig.store.write() as session:
        row = session.get_one(RepairRow, repair)
        for name, value in values.items():
            setattr(row, name, value)
        session.add(row)


def by_hand(rig: Rig, kind: str, **more: str) -> None:
    rig.lab.acts.do(Order.model_validate({"kind": kind, "node": NODE, "by": "bob"} | more))


def marked_by(rig: Rig, owner: str) -> None:
    """Marks that an earlier repair has left on the node."""
    by_hand(rig, "reserve", reservation=f"daytwo-{owner}")
    by_hand(rig, "drain", reason=f"daytwo {owner}: contained, test")


def ended(rig: Rig, state: State) -> str:
    """A repair of the node that ended an hour ago in `state`; returns its id."""
    at = rig.now() - timedelta(hours=1)
    repair = new_id("r", at)
    rig.open_repair(NODE, repair)
    change(rig, repair, state=state, open_key=None, closed_at=at, opened_at=at)
    return repair


async def test_marks_that_a_restarted_scheduler_has_lost_are_written_again(rig: Rig) -> None:
    repair = await contained(rig)
    rig.lab.fleet.restart_controller()
    await rig.steps(1, 2)
    assert rig.marks()[NODE].startswith(f"daytwo {repair}:")
    assert rig.reservations() == {f"daytwo-{repair}"}


async def test_people_are_told_of_marks_that_were_written_again(rig: Rig) -> None:
    await contained(rig)
    rig.lab.fleet.restart_controller()
    await rig.steps(1, 2, 61)
    assert [notice["subject"] for notice in rig.notices()] == [f"{NODE}: contained again"]


async def test_marks_that_a_person_has_lifted_are_never_written_again(rig: Rig) -> None:
    await contained(rig)
    by_hand(rig, "undrain")
    orders = len(rig.lab.acts.log)
    await rig.steps(1, 2, 61)
    assert len(rig.lab.acts.log) == orders


async def test_somebody_is_asked_once_who_has_lifted_our_marks(rig: Rig) -> None:
    await contained(rig)
    by_hand(rig, "undrain")
    await rig.steps(1, 2, 61)
    rig.reconciler = rig.controller()
    await rig.steps(1, 61)
    (notice,) = rig.notices()
    assert "nothing is written on it until you decide" in notice["text"]


async def test_a_repair_says_that_its_marks_were_lifted(rig: Rig) -> None:
    repair = await contained(rig)
    by_hand(rig, "undrain")
    await rig.steps(1, 2)
    with rig.store.read() as session:
        assert "somebody has taken our marks off" in session.get_one(RepairRow, repair).waiting_for


WAITING = [State.WAITING, State.DRAINING, State.HELD, State.NEEDS_HELP]


@pytest.mark.parametrize("state", WAITING)
async def test_marks_that_a_restart_lost_are_written_again_in_every_state_that_waits(rig: Rig, state: State) -> None:
    repair = await contained(rig)
    change(rig, repair, state=state)
    rig.lab.fleet.restart_controller()
    await rig.steps(1, 2)
    assert rig.marks()[NODE].startswith(f"daytwo {repair}:")


@pytest.mark.parametrize("state", WAITING)
async def test_marks_that_a_person_lifted_stay_off_in_every_state_that_waits(rig: Rig, state: State) -> None:
    repair = await contained(rig)
    change(rig, repair, state=state)
    by_hand(rig, "undrain")
    await rig.steps(1, 2, 61)
    assert rig.marks() == {}
    assert "somebody has taken our marks off" in [notice["text"] for notice in rig.notices()][-1]


AT_WORK = [State.QUARANTINING, State.WAITING, State.DRAINING, State.ACTING, State.VERIFYING, State.REJOINING]


def goes_on(rig: Rig, state: State) -> str:
    """A repair that is further than its proposal, of a node that was never contained; returns its id."""
    repair = new_id("r", rig.now())
    rig.open_repair(NODE, repair)
    change(rig, repair, state=state)
    return repair


@pytest.mark.parametrize("state", AT_WORK)
async def test_a_repair_at_work_sees_to_its_marks_by_itself(rig: Rig, state: State) -> None:
    goes_on(rig, state)
    rig.broken([NODE])
    await rig.steps(0.5, 2, 61)
    assert rig.lab.acts.log == []


async def test_a_repair_that_goes_to_work_before_it_is_contained_is_not(rig: Rig) -> None:
    """The node was looked at while the repair was still proposed."""
    repair = goes_on(rig, State.DRAINING)
    marks = Marks(rig.store, Ledger(rig.store, rig.adapters), lambda _: None)
    with pytest.raises(NotYet, match="it has gone on"):
        await marks.contain(
            rig.adapters.cluster(CLUSTER), NODE, Mark(repair_id=repair, text="t"), while_in=CONTAINED_IN
        )
    assert rig.lab.acts.log == []


async def test_marks_lifted_long_after_a_restart_are_a_persons_doing(rig: Rig) -> None:
    await contained(rig)
    rig.lab.fleet.restart_controller()
    await rig.steps(1, 2, 61)
    by_hand(rig, "undrain")
    await rig.steps(1, 2, 61)
    assert rig.marks() == {}


async def test_a_deleted_reservation_of_ours_is_not_made_again(rig: Rig) -> None:
    repair = await contained(rig)
    by_hand(rig, "unreserve", reservation=f"daytwo-{repair}")
    await rig.steps(1, 2, 61)
    assert rig.reservations() == set()


async def test_a_tool_that_lifts_our_marks_again_and_again_is_a_rival_healer(rig: Rig) -> None:
    repair = await contained(rig)
    for _ in range(2):
        by_hand(rig, "undrain")
        await rig.steps(1, 2)
        by_hand(rig, "drain", reason=f"daytwo {repair}: contained, test")
        await rig.steps(1, 2)
    assert findings(rig) >= {"foreign-act", "rival-healer"}


async def test_a_rival_is_named_with_the_words_that_it_left(rig: Rig) -> None:
    await contained(rig)
    by_hand(rig, "drain", reason="NHC: check_gpu failed")
    await rig.steps(1, 2)
    by_hand(rig, "undrain")
    await rig.steps(1, 2)
    with rig.store.read() as session:
        (rival,) = session.exec(select(FindingRow).where(FindingRow.fault == "rival-healer"))
    assert "bob drained it over our marks: NHC: check_gpu failed" in rival.evidence[-1]


async def test_what_we_do_ourselves_makes_no_rival(rig: Rig) -> None:
    repair = await contained(rig)
    cluster = rig.adapters.cluster(CLUSTER)
    for _ in range(3):
        await rig.reconciler._marks.lift(cluster, NODE, repair)
        await rig.steps(1, 2)
        await rig.reconciler._marks.contain(cluster, NODE, Mark(repair_id=repair, text="again"))
        await rig.steps(1, 2)
    assert not findings(rig) & {"foreign-act", "rival-healer"}


async def test_a_restart_of_the_scheduler_makes_no_rival(rig: Rig) -> None:
    await contained(rig)
    for _ in range(3):
        rig.lab.fleet.restart_controller()
        await rig.steps(1, 2)
    assert not findings(rig) & {"foreign-act", "rival-healer"}


async def test_a_rival_that_was_quiet_for_its_window_is_one_no_more(rig: Rig) -> None:
    await contained(rig)
    by_hand(rig, "drain", reason="NHC: check_gpu failed")
    await rig.steps(1, 2)
    by_hand(rig, "undrain")
    await rig.steps(1, 2)
    with rig.store.write() as session:
        old = rig.now() - timedelta(hours=25)
        session.exec(update(FindingRow).where(col(FindingRow.fault).in_(OF_HANDS)).values(last_received=old))
    await rig.steps(1)
    assert not findings(rig) & {"foreign-act", "rival-healer"}


def findings(rig: Rig) -> set[str]:
    """The faults that fire on the node."""
    with rig.store.read() as session:
        firing = (FindingRow.node == NODE, FindingRow.status == FindingStatus.FIRING)
        return set(session.exec(select(FindingRow.fault).where(*firing)))


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DISMISSED, State.AUTO_RESOLVED])
async def test_marks_of_a_repair_that_has_ended_are_lifted(rig: Rig, state: State) -> None:
    marked_by(rig, ended(rig, state))
    await rig.steps(1, 2)
    assert (rig.marks(), rig.reservations()) == ({}, set())


@pytest.mark.parametrize("state", [State.REMOVED, State.HANDED_OVER])
async def test_marks_of_a_node_that_was_removed_or_handed_over_stay(rig: Rig, state: State) -> None:
    marked_by(rig, ended(rig, state))
    await rig.steps(1, 2, 61)
    assert NODE in rig.marks()


async def test_marks_of_a_repair_that_is_not_in_the_store_stay(rig: Rig) -> None:
    marked_by(rig, "r-20260101-000000-aaaaa")
    await rig.steps(1, 2, 61)
    assert NODE in rig.marks()


async def test_a_persons_drain_over_our_old_mark_stays(rig: Rig) -> None:
    marked_by(rig, ended(rig, State.SUCCEEDED))
    by_hand(rig, "drain", reason="bad fan, bob")
    await rig.steps(1, 2, 61)
    drain = rig.lab.fleet.node(NODE).drain
    assert drain is not None
    assert drain.reason == "bad fan, bob"
