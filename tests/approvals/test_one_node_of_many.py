"""A repair inside an open incident: who approves it must know that it is one of many, and no policy approves it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.scheduler import SchedulerActivities
from daytwo.domain.exchange import StepInput
from daytwo.domain.vocabulary import Action, State
from daytwo.store.engine import Store
from daytwo.store.tables import IncidentRow, NodeRow
from tests.approvals.conftest import REF, Court, a_court
from tests.builders import NOW, a_proposal
from tests.rows import an_automatic_policy, keep

INCIDENT = "i-20261130-142000-abcde"


def open_incident(court: Court, **fields: Any) -> None:
    times = {"first_at": NOW, "last_at": NOW, "opened_at": NOW}
    values: dict[str, Any] = {"id": INCIDENT, "cluster": "east", "fault_class": "board", "open_key": "east/board"}
    keep(court.store, IncidentRow(**values | {"nodes": 40, "domains": {"pool/default": 40}} | times | fields))


async def test_an_approval_that_does_not_name_the_incident_is_refused_and_says_how(court: Court) -> None:
    open_incident(court)
    verdict = await court.approved("cli:lea")
    assert verdict.status == "refused"
    assert f"40 nodes have board faults in incident {INCIDENT}" in verdict.why
    assert f"approve it with a --reason that names {INCIDENT}" in verdict.why


async def test_an_approval_that_names_it_is_accepted(court: Court) -> None:
    open_incident(court)
    assert (await court.approved("cli:lea", reason=f"its PSU is smoking, not {INCIDENT}")).status == "accepted"


async def test_a_policys_approval_waits_until_it_is_over(court: Court) -> None:
    open_incident(court)
    ident = court.written("policy", channel="policy")
    assert (await court.judge(ident)).status == "wait"
    with court.store.write() as session:
        session.get_one(IncidentRow, INCIDENT).open_key = None
    assert (await court.judge(ident)).status == "accepted"


@pytest.mark.parametrize(("channel", "granted"), [("policy", False), ("cli", True)])
async def test_what_a_policy_approved_does_not_begin_in_an_incident_that_came_since(
    court: Court, channel: str, granted: bool
) -> None:
    court.written("policy" if channel == "policy" else "cli:lea", channel=channel, status="accepted", ended_at=NOW)
    open_incident(court)
    step = StepInput(ref=REF, stage="right-1", action=Action.REBOOT, proposal=a_proposal(), since=NOW)
    right = await SchedulerActivities(court.world).take_right(step)
    assert (right.granted, f"while incident {INCIDENT} goes on" in right.text) == (granted, not granted)


@pytest.fixture
def court(store: Store, tmp_path: Path, scheduler: str) -> Court:
    return a_court(store, tmp_path, policy=an_automatic_policy(), scheduler=scheduler)


@pytest.mark.parametrize(
    "fields",
    [
        {"open_key": None},
        {"open_key": "west/board"},
        {"open_key": "east/link"},
        {"domains": {"rack-9": 40}},
        {"last_at": NOW - timedelta(hours=2)},
    ],
    ids=["over", "elsewhere", "another class", "other domains", "held for long enough"],
)
async def test_another_incident_is_no_reason(court: Court, fields: dict[str, Any]) -> None:
    open_incident(court, **fields)
    assert (await court.approved("cli:lea")).status == "accepted"


async def test_a_node_of_a_domain_that_it_has_reached_is_in_it(court: Court) -> None:
    open_incident(court, domains={"rack-9": 40})
    with court.store.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).domains = ["rack-9"]
    assert (await court.approved("cli:lea")).status == "refused"


@pytest.mark.parametrize(("kind", "state"), [("dismiss", State.PROPOSED), ("hold", State.PROPOSED)])
async def test_what_touches_nothing_needs_no_such_reason(court: Court, kind: str, state: State) -> None:
    open_incident(court)
    assert (await court.judge(court.written("cli:lea", kind, reason="known"), state)).status == "accepted"
    assert (await court.approved("cli:lea", action=Action.VERIFY)).status == "accepted"
