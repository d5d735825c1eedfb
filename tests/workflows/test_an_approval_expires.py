"""An approval is valid for as long as the policy says, and is then asked for again."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowHandle

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import DecisionKind, Moment
from tests.workflows.acts import Acts, a_repair_by
from workflows import names


class Busy(Acts):
    """A node that is never idle, and a policy whose approvals are valid for a second."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[Event, str]] = []

    @activity.defn(name=do.AUTHORISE.name)
    async def authorise(self, arg: x.AuthoriseInput) -> x.Verdict:
        approves = arg.deciding == arg.decision_id
        return x.Verdict(
            status="accepted" if approves else "received",
            kind=DecisionKind.APPROVE,
            actor="cli:ann",
            moment=Moment.WHEN_IDLE,
            valid_seconds=1.0,
        )

    @activity.defn(name=do.RECORD.name)
    async def record(self, arg: x.RecordInput) -> x.Done:
        self.events.append((arg.event, arg.text))
        return x.Done(at=datetime.now(UTC))

    async def until(self, event: Event, repair: WorkflowHandle[Any, Any]) -> str:
        """The text of an event, once it has come; the repair is made to look meanwhile."""
        for _ in range(200):
            if found := [text for each, text in self.events if each is event]:
                return found[0]
            await asyncio.sleep(0.05)
            await repair.signal(names.LOOK_AGAIN)
        raise AssertionError(f"{event} not in {self.events}")


async def test_an_approval_whose_moment_does_not_come_in_time_is_asked_for_again(temporal: Client) -> None:
    acts = Busy()
    async with a_repair_by(temporal, acts) as repair:
        await acts.until(Event.REVISED, repair)
        await repair.execute_update(names.DECIDE, "d-1")
        text = await acts.until(Event.EXPIRED, repair)
    assert "did not come in the time" in text
    assert [event for event, _ in acts.events][-2:] == [Event.QUARANTINED, Event.EXPIRED]
