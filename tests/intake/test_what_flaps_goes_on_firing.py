"""A reading that comes and goes: cured twice a day, and from the third time on not before it is calm."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import select

from daytwo.controller.flapping import end_what_is_calm
from daytwo.controller.leases import acquire
from daytwo.domain.exchange import RepairRef
from daytwo.domain.vocabulary import FindingStatus
from daytwo.repairs import clear_findings
from daytwo.store.tables import FindingRow, ObservationRow
from tests.intake.conftest import NOW

MINUTES, HOURS = timedelta(minutes=1), timedelta(hours=1)
FAULT = "recovery-action"


def come_and_go(
    intake: Any, times: int, *, fault: str = FAULT, begin: datetime = NOW, every: timedelta = HOURS
) -> None:
    """Fire and clear so many times."""
    for number in range(times):
        for status, at in ((FindingStatus.FIRING, begin), (FindingStatus.CLEARED, begin + MINUTES)):
            say(intake, status, at + number * every, fault)


def say(intake: Any, status: FindingStatus, at: datetime, fault: str = FAULT) -> None:
    seen = intake.observation(intake.observations() + 1, fault=fault, status=status, first_seen=at, last_seen=at)
    intake.send(seen, now=at)


def status(intake: Any) -> str:
    (row,) = intake.findings()
    return str(row.status)


def calm(intake: Any, at: datetime) -> None:
    lease = acquire(intake.store, "test", holder="me", seconds=10.0, now=at)
    assert lease is not None
    end_what_is_calm(intake.store, lease, at)


@pytest.mark.parametrize(("times", "found"), [(1, "cleared"), (2, "cleared"), (3, "firing"), (5, "firing")])
def test_the_third_end_in_a_day_is_none(intake: Any, times: int, found: str) -> None:
    come_and_go(intake, times)
    assert status(intake) == found


def test_it_is_told_once(intake: Any) -> None:
    come_and_go(intake, 6)
    told = [line for line in intake.findings()[0].evidence if "flapping" in line]
    (line,) = told
    assert line.startswith("it came and went 3 times in 24 h (30 Nov 12:01, 30 Nov 13:01, 30 Nov 14:01 UTC)")


def test_ends_that_lie_days_apart_are_ends(intake: Any) -> None:
    come_and_go(intake, 5, every=timedelta(hours=13))
    assert status(intake) == "cleared"


@pytest.mark.parametrize("fault", ["slurm-drained", "slurm-drained-by-person"])
def test_what_people_and_schedulers_do_does_not_flap(intake: Any, fault: str) -> None:
    come_and_go(intake, 5, fault=fault)
    assert status(intake) == "cleared"


@pytest.mark.parametrize(("hours", "found"), [(20, "firing"), (24, "firing"), (24.1, "cleared")])
def test_it_ends_when_it_has_been_calm(intake: Any, hours: float, found: str) -> None:
    come_and_go(intake, 3)
    calm(intake, NOW + timedelta(hours=hours))
    assert status(intake) == found


def test_its_end_makes_the_node_due(intake: Any) -> None:
    come_and_go(intake, 3)
    before = intake.row().due
    calm(intake, NOW + 30 * HOURS)
    assert intake.row().due == before + 1


def test_what_fires_at_the_moment_is_not_calm_however_long_it_lasts(intake: Any) -> None:
    come_and_go(intake, 3)
    say(intake, FindingStatus.FIRING, NOW + 4 * HOURS)
    calm(intake, NOW + 60 * HOURS)
    assert status(intake) == "firing"


def test_a_repair_that_judged_it_begins_anew(intake: Any) -> None:
    come_and_go(intake, 3)
    with intake.store.write() as session:
        up_to = max(row.id or 0 for row in session.exec(select(ObservationRow)))
        ref = RepairRef(repair_id="r-1", cluster="east", node=intake.node)
        clear_findings(session, ref, up_to, NOW + 3 * HOURS)
    come_and_go(intake, 2, begin=NOW + 4 * HOURS)
    assert status(intake) == "cleared"


def test_the_same_story_told_late_is_the_same_finding(intake: Any) -> None:
    """An agent that was cut off tells it all at once; what counts is when it was."""
    story = [
        intake.observation(2 * number + turn + 1, fault=FAULT, status=state, first_seen=at, last_seen=at)
        for number in range(3)
        for turn, state in enumerate((FindingStatus.FIRING, FindingStatus.CLEARED))
        for at in (NOW + number * 13 * HOURS + turn * MINUTES,)
    ]
    intake.send(*story, now=NOW + 40 * HOURS)
    with intake.store.read() as session:
        row = session.exec(select(FindingRow)).one()
    assert (row.status, len(row.turns)) == ("cleared", 2)
