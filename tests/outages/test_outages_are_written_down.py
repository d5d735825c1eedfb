"""What answers and what is away is written when it changes; limits leave out the time in which a part was away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlmodel import col, select

from daytwo.controller.leases import LeaseLost, acquire
from daytwo.domain.errors import NotYet, TryAgain, UnknownAnswer, Unreachable
from daytwo.outages import Away, Outages, time_away
from daytwo.store.engine import Store
from daytwo.store.tables import OutageRow, PartRow

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
PART = "scheduler/east"


class Told:
    """One process that talks to a part, at a time that only moves when it is told to."""

    def __init__(self, store: Store, seen_by: str = "worker") -> None:
        self.store, self.now = store, START
        self.outages = Outages(store, seen_by, now=lambda: self.now)

    async def asks(self, *answers: Exception | None, every: float = 2.0, part: str = PART) -> None:
        """Ask so often, so many seconds apart; each answer is an error or good."""
        for answer in answers:
            try:
                async with self.outages.watching(part):
                    if answer:
                        raise answer
            except TryAgain:
                pass
            self.now += timedelta(seconds=every)

    def row(self) -> PartRow:
        with self.store.read() as session:
            return session.exec(select(PartRow)).one()

    def past(self) -> list[tuple[float, float]]:
        """The outages that are over, in seconds from the start."""
        with self.store.read() as session:
            rows = session.exec(select(OutageRow).order_by(col(OutageRow.began))).all()
        return [((row.began - START).total_seconds(), (row.ended - START).total_seconds()) for row in rows]

    def away(self, since: float = 0.0) -> Away:
        with self.store.read() as session:
            return time_away(session, [PART], since=START + timedelta(seconds=since), now=self.now)


@pytest.fixture
def told(store: Store) -> Told:
    return Told(store)


GONE = Unreachable("connection refused")


async def test_an_outage_is_written_with_its_reason_and_the_last_good_answer(told: Told) -> None:
    await told.asks(None, GONE, GONE)
    row = told.row()
    assert (row.away, row.error) == (True, "connection refused")
    assert (row.last_good, row.since) == (START, START + timedelta(seconds=2))


@pytest.mark.parametrize("error", [Unreachable("no"), UnknownAnswer("not JSON")])
async def test_a_part_that_answers_nonsense_is_away(told: Told, error: Exception) -> None:
    await told.asks(error)
    assert told.row().away


async def test_a_part_that_says_not_yet_has_answered(told: Told) -> None:
    await told.asks(None, NotYet("under way"))
    assert not told.row().away


async def test_its_end_is_written_and_the_outage_kept(told: Told) -> None:
    await told.asks(GONE, GONE, None, None)
    assert (told.row().away, told.row().error, told.past()) == (False, "", [(0.0, 4.0)])


async def test_a_part_that_always_answers_is_written_once(told: Told) -> None:
    await told.asks(*[None] * 100)
    assert (told.row().since, told.row().tried_at, told.past()) == (START, START, [])


async def test_while_it_is_away_few_tries_are_written(told: Told) -> None:
    seen = []
    for _ in range(60):
        await told.asks(GONE, every=1.0)
        seen.append(told.row().tried_at)
    assert len(set(seen)) <= 5


async def test_one_good_answer_between_two_failures_ends_no_outage(told: Told) -> None:
    await told.asks(GONE, None, GONE)
    assert (told.row().away, told.row().since, told.past()) == (True, START, [])


async def test_what_another_process_found_away_is_seen_to_be_back(told: Told) -> None:
    other = Told(told.store)
    await told.asks(None)
    await other.asks(GONE)
    await told.asks(*[None] * 20)
    assert not told.row().away


async def test_an_outage_that_another_ended_is_written_again(told: Told) -> None:
    await told.asks(GONE)
    await Told(told.store).asks(None)
    await told.asks(*[GONE] * 10)
    assert told.row().away


async def test_who_has_lost_its_lease_writes_nothing(store: Store) -> None:
    lease = acquire(store, "watch", "me", now=START, seconds=1)
    assert lease is not None
    acquire(store, "watch", "another", now=START + timedelta(seconds=2), seconds=1)
    with pytest.raises(LeaseLost):
        await Outages(store, "controller", guard=lease.guard).bad(PART, "no")
    with store.read() as session:
        assert session.exec(select(PartRow)).all() == []


async def test_time_in_which_a_part_was_away_is_counted_once(told: Told) -> None:
    other = Told(told.store, seen_by="controller")
    await told.asks(*[GONE] * 5, None)
    await other.asks(None, *[GONE] * 6, None)
    told.now = START + timedelta(seconds=100)
    assert told.away().seconds == 14.0
    assert told.away(since=12.0).seconds == 2.0


async def test_an_outage_that_goes_on_counts_up_to_now(told: Told) -> None:
    await told.asks(*[GONE] * 30)
    assert told.away() == (60.0, {PART: START})


async def test_what_nobody_tries_any_more_does_not_count_for_ever(told: Told) -> None:
    await told.asks(GONE)
    told.now += timedelta(hours=5)
    assert told.away() == (60.0, {})


@pytest.mark.parametrize(("gap", "kept"), [(3, []), (600, [(15.0, 615.0)])])
def test_the_time_in_which_no_controller_ran_is_written_by_the_next(
    store: Store, gap: float, kept: list[tuple[float, float]]
) -> None:
    acquire(store, "reconcile", "me", now=START, seconds=15)
    acquire(store, "reconcile", "another", now=START + timedelta(seconds=15 + gap), seconds=15)
    assert Told(store).past() == kept
