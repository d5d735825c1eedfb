"""`take-right`: an approved act begins only while its window is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.scheduler import SchedulerActivities
from daytwo.domain.exchange import Right, StepInput
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import Action
from daytwo.domain.windows import Window
from daytwo.store.engine import Store
from tests.approvals.conftest import REF, Court, a_court
from tests.builders import NOW, a_proposal

OPENS = NOW.replace(hour=22, minute=0, second=0)


@pytest.fixture
def court(store: Store, tmp_path: Path, scheduler: str) -> Court:
    window = Window(name="nights", begins="22:00", ends="06:00", actions=(Action.REBOOT,))
    return a_court(store, tmp_path, policy=Policy(windows=(window,)), scheduler=scheduler)


async def asked(court: Court, action: Action = Action.REBOOT) -> Right:
    step = StepInput(ref=REF, stage="right-1", action=action, proposal=a_proposal(), since=NOW)
    return await SchedulerActivities(court.world).take_right(step)


async def test_an_act_waits_for_its_window_and_says_so(court: Court) -> None:
    right = await asked(court)
    assert (right.granted, right.opens_at) == (False, OPENS)
    assert court.repair().waiting_for == "waits for the window nights, which opens 2026-11-30 22:00Z"


async def test_an_act_begins_in_its_window(court: Court) -> None:
    court.time[0] = OPENS
    assert (await asked(court)).granted


async def test_an_act_that_no_window_is_for_begins_at_once(court: Court) -> None:
    assert (await asked(court, Action.POWER_CYCLE)).granted
