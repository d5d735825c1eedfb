"""A repair that needs help, or that is told nonsense, goes on: its workflow never fails, and a person can decide."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.vocabulary import DecisionKind, State
from tests.builders import a_proposal
from tests.workflows.acts import Acts, a_repair_by
from workflows import names

S = State
GIVES_AWAY, UNKNOWN = "d-hand-over", "d-unknown"


class Desk(Acts):
    """One decision is known, which dismisses what is proposed, or hands over what needs help."""

    def __init__(self, *, is_mute: bool = False) -> None:
        super().__init__()
        self.is_mute = is_mute
        self.told = asyncio.Event()

    @activity.defn(name=do.AUTHORISE.name)
    async def authorise(self, arg: x.AuthoriseInput) -> x.Verdict:
        if arg.decision_id != GIVES_AWAY:
            raise ApplicationError("it is not in the store", type="NotFound", non_retryable=True)
        kind = DecisionKind.HAND_OVER if arg.state is S.NEEDS_HELP else DecisionKind.DISMISS
        return x.Verdict(status="accepted", kind=kind)

    @activity.defn(name=do.ANNOUNCE.name)
    async def announce(self, _: x.AnnounceInput) -> x.Announced:
        self.told.set()
        if self.is_mute:
            raise ApplicationError("nobody can be told", type="Refused", non_retryable=True)
        return x.Announced(at=datetime.now(UTC), again_at=datetime.now(UTC) + timedelta(hours=1))


IN_HELP = {"state": S.NEEDS_HELP, "revision": 1, "proposal": a_proposal(), "attention": "it did not boot"}
PROPOSED = {"state": S.PROPOSED, "revision": 1, "proposal": a_proposal()}


async def given_away(repair: WorkflowHandle[Any, Any]) -> State:
    await repair.execute_update(names.DECIDE, GIVES_AWAY)
    return State((await asyncio.wait_for(repair.result(), 20))["state"])


async def test_a_cancel_leaves_a_repair_that_needs_help_to_a_person(temporal: Client) -> None:
    desk = Desk()
    async with a_repair_by(temporal, desk, **IN_HELP) as repair:
        await desk.told.wait()
        await repair.cancel()
        assert await given_away(repair) == S.HANDED_OVER


@pytest.mark.parametrize(("state", "end"), [(IN_HELP, S.HANDED_OVER), (PROPOSED, S.DISMISSED)])
async def test_a_decision_that_no_row_stands_for_changes_nothing(
    temporal: Client, state: dict[str, Any], end: State
) -> None:
    desk = Desk()
    async with a_repair_by(temporal, desk, **state) as repair:
        await repair.execute_update(names.DECIDE, UNKNOWN)
        assert await given_away(repair) == end


async def test_a_repair_of_which_nobody_can_be_told_still_takes_decisions(temporal: Client) -> None:
    desk = Desk(is_mute=True)
    async with a_repair_by(temporal, desk, **IN_HELP) as repair:
        await desk.told.wait()
        assert await given_away(repair) == S.HANDED_OVER


class Requeued(Acts):
    """A node whose job was requeued already: an approval cannot be taken back any more."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[State] = []

    @activity.defn(name=do.LIFT.name)
    async def lift(self, arg: x.StepInput) -> x.StepDone:
        return x.StepDone(text="the marks stay", interrupted=arg.taking_back)

    @activity.defn(name=do.RECORD.name)
    async def record(self, arg: x.RecordInput) -> x.Done:
        self.recorded.append(arg.to_state)
        return x.Done(at=datetime.now(UTC))


async def test_a_cancel_after_a_job_was_requeued_asks_a_person(temporal: Client) -> None:
    acts = Requeued()
    async with a_repair_by(temporal, acts, state=S.HELD, held_from=S.DRAINING, proposal=a_proposal()) as repair:
        await repair.cancel()
        for _ in range(200):
            if acts.recorded:
                break
            await asyncio.sleep(0.05)
    assert (acts.recorded, acts.closed) == ([S.NEEDS_HELP], [])
