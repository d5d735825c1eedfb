"""An approval that a freeze outlasted has ended with its time: not pending, nor brought to its repair for ever."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from daytwo import repairs
from daytwo.domain.exchange import RecordInput
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import State
from daytwo.store.engine import Store
from tests.approvals.conftest import REF, Court, a_court
from tests.builders import NOW

DAY = timedelta(days=1)
LEFT = [(Event.EXPIRED, State.PROPOSED), (Event.STUCK, State.NEEDS_HELP)]


@pytest.fixture
def court(store: Store, tmp_path: Path) -> Court:
    return a_court(store, tmp_path, repair={"state": State.APPROVED})


def left(court: Court, event: Event, to_state: State) -> None:
    """The repair leaves `approved` a day later."""
    values = {"from_state": State.APPROVED, "to_state": to_state, "at": NOW + DAY, "text": "not used in its time"}
    recorded = RecordInput(ref=REF, number=1, event=event, revision=2, rung=4, **values)
    court.store.change(lambda session: repairs.record(session, recorded))


@pytest.mark.parametrize(("event", "to_state"), LEFT)
def test_the_approval_that_led_there_is_void_and_says_why(court: Court, event: Event, to_state: State) -> None:
    ident = court.written("cli:lea")
    left(court, event, to_state)
    assert (court.row(ident).status, court.row(ident).status_reason) == ("void", "not used in its time")


def test_an_approval_that_came_since_is_still_to_be_judged(court: Court) -> None:
    court.later(DAY.total_seconds() - 1)
    ident = court.written("cli:lea")
    left(court, *LEFT[0])
    assert court.row(ident).status == "pending"


def test_a_stop_is_still_to_be_judged(court: Court) -> None:
    ident = court.written("cli:lea", "hold")
    left(court, *LEFT[0])
    assert court.row(ident).status == "pending"
