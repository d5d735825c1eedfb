"""Temporal's own cancel takes effect whatever the repair is doing when it comes, also what does not notice it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowHandle

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.errors import TryAgain
from daytwo.domain.vocabulary import State
from tests.workflows.acts import Acts, a_repair_by


class Slow(Acts):
    """One activity takes until `done`, whoever cancels it meanwhile."""

    def __init__(self, slow: str) -> None:
        super().__init__()
        self.slow = slow
        self.begun, self.done = asyncio.Event(), asyncio.Event()

    @activity.defn(name=do.RECORD.name)
    async def record(self, _: x.RecordInput) -> x.Done:
        if self.slow == "record":
            self.begun.set()
            if not self.done.is_set():
                raise TryAgain("the store is away")
        return x.Done(at=datetime.now(UTC))

    @activity.defn(name=do.ANNOUNCE.name)
    async def announce(self, _: x.AnnounceInput) -> x.Done:
        if self.slow == "announce":
            self.begun.set()
            await self.done.wait()
        return x.Done(at=datetime.now(UTC))


async def seen(handle: WorkflowHandle[Any, Any]) -> None:
    """Until the workflow has seen the cancel."""
    for _ in range(200):
        events = [event.WhichOneof("attributes") for event in (await handle.fetch_history()).events]
        asked = [n for n, kind in enumerate(events) if kind == "workflow_execution_cancel_requested_event_attributes"]
        if asked and "workflow_task_completed_event_attributes" in events[asked[0] :]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the cancel was not seen")


@pytest.mark.parametrize("slow", ["announce", "record"])
async def test_a_cancel_takes_the_proposal_back_whatever_is_under_way(temporal: Client, slow: str) -> None:
    acts = Slow(slow)
    async with a_repair_by(temporal, acts) as repair:
        await acts.begun.wait()
        await repair.cancel()
        await seen(repair)
        acts.done.set()
        result = await asyncio.wait_for(repair.result(), 30)
    assert (result["state"], acts.closed) == (State.DISMISSED, [State.DISMISSED])
