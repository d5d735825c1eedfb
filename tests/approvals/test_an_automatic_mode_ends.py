"""The policy is made to ask a person while something that it has approved is still on its way."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.scheduler import SchedulerActivities
from daytwo.domain.exchange import StepInput
from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.vocabulary import Action, Mode
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow
from tests.approvals.conftest import REF, Court, a_court
from tests.builders import NOW, a_proposal
from tests.rows import a_policy, an_automatic_policy


@pytest.fixture
def court(store: Store, tmp_path: Path, scheduler: str) -> Court:
    return a_court(store, tmp_path, policy=an_automatic_policy(), scheduler=scheduler)


def apply(court: Court, policy: Policy) -> None:
    """As `daytwo clusters apply` does."""
    with court.store.write() as session:
        row = session.get_one(ClusterRow, "east")
        row.definition = row.definition | {"policy": policy.model_dump(mode="json")}
        row.updated_at = court.time[0]


def asking() -> Policy:
    return a_policy().model_copy(update={"default": FaultRule(mode=Mode.RECOMMEND)})


async def test_what_it_approved_is_refused_where_it_was_not_judged_yet(court: Court) -> None:
    ident = court.written("policy", channel="policy")
    court.later(1)
    apply(court, asking())
    verdict = await court.judge(ident)
    assert (verdict.status, "xid-79 is not automatic any more" in verdict.why) == ("refused", True)


@pytest.mark.parametrize(("channel", "granted"), [("policy", False), ("cli", True)])
async def test_what_it_approved_does_not_begin_and_what_a_person_approved_does(
    court: Court, channel: str, granted: bool
) -> None:
    court.written("policy" if channel == "policy" else "cli:lea", channel=channel, status="accepted", ended_at=NOW)
    court.later(1)
    apply(court, asking())
    step = StepInput(ref=REF, stage="right-1", action=Action.REBOOT, proposal=a_proposal(), since=NOW)
    right = await SchedulerActivities(court.world).take_right(step)
    assert (right.granted, "a person decides" in court.repair().waiting_for) == (granted, not granted)


async def test_what_it_approves_is_accepted_while_it_is_automatic(court: Court) -> None:
    assert (await court.judge(court.written("policy", channel="policy"))).status == "accepted"
