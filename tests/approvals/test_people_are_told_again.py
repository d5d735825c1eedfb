"""`announce`: what people are told, when again, and when the policy may approve by itself."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.records import RecordActivities
from daytwo.domain.exchange import Announced, AnnounceInput
from daytwo.domain.policy import Approval, FaultRule, Policy
from daytwo.domain.vocabulary import Action, Mode
from daytwo.domain.windows import Window
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow
from tests.approvals.conftest import REF, Court, a_court
from tests.builders import NOW, a_proposal
from tests.rows import REPAIR

NIGHTS = Policy(default=FaultRule(mode=Mode.AUTO), windows=(Window(name="nights", begins="22:00", ends="06:00"),))
OPENS = NOW.replace(hour=22, minute=0, second=0)


async def told(court: Court, reminder: int = 0, **proposal: Any) -> Announced:
    about = a_proposal(repair_id=REPAIR, revision=2, **proposal)
    return await RecordActivities(court.world).announce(
        AnnounceInput(ref=REF, revision=2, proposal=about, reminder=reminder)
    )


def notices(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "notices.jsonl").read_text().splitlines()]


def approvals(court: Court) -> list[str]:
    with court.store.read() as session:
        row = session.get(DecisionRow, f"d-policy-{REPAIR}-2")
    return [row.kind] if row else []


async def test_a_critical_proposal_is_told_again_after_five_minutes(court: Court) -> None:
    assert (await told(court)).again_at == NOW + timedelta(minutes=5)


async def test_the_second_reminder_goes_to_the_next_group_and_says_that_it_is_one(court: Court, tmp_path: Path) -> None:
    await told(court, reminder=2)
    (notice,) = notices(tmp_path)
    assert (notice["to"], notice["subject"].split(":")[0]) == (["lead"], "reminder 2")


async def test_a_reminder_says_that_a_second_person_is_missing(court: Court, tmp_path: Path) -> None:
    with court.store.write() as session:
        session.merge(court.repair()).waiting_for = "needs a second person: cli:lea has approved"
    await told(court, reminder=1)
    assert "needs a second person: cli:lea" in notices(tmp_path)[0]["text"]


async def approved_at(store: Store, folder: Path, now: datetime) -> tuple[list[str], Announced]:
    court = a_court(store, folder, policy=NIGHTS)
    court.time[0] = now
    announced = await told(court, mode=Mode.AUTO)
    return approvals(court), announced


async def test_the_policy_approves_nothing_outside_its_windows_and_is_asked_again(store: Store, tmp_path: Path) -> None:
    approved, announced = await approved_at(store, tmp_path, NOW)
    assert (approved, announced.again_at) == ([], OPENS)


async def test_the_policy_approves_in_its_window(store: Store, tmp_path: Path) -> None:
    approved, _ = await approved_at(store, tmp_path, OPENS)
    assert approved == ["approve"]


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.RECORD, Mode.RECOMMEND])
async def test_a_policy_that_was_changed_meanwhile_approves_nothing(store: Store, tmp_path: Path, mode: Mode) -> None:
    court = a_court(store, tmp_path, policy=Policy(default=FaultRule(mode=mode)))
    await told(court, mode=Mode.AUTO)
    assert approvals(court) == []


async def test_a_policy_that_was_changed_meanwhile_does_not_approve_what_it_now_never_does(
    store: Store, tmp_path: Path
) -> None:
    never = Approval(never_automatic=(Action.REBOOT,))
    court = a_court(store, tmp_path, policy=Policy(default=FaultRule(mode=Mode.AUTO), approval=never))
    await told(court, mode=Mode.AUTO)
    assert approvals(court) == []
