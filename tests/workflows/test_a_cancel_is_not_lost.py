"""Temporal's own cancel takes effect whatever the repair is doing when it comes, also what does not notice it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.errors import TryAgain
from daytwo.domain.vocabulary import State
from tests.builders import a_proposal
from workers.sandbox import workflow_runner
from workflows import names
from workflows.node_repair import NodeRepair


class Slow:
    """The activities of a proposal, without a plane. One of them takes until `done`, whoever cancels it meanwhile."""

    def __init__(self, slow: str) -> None:
        self.slow = slow
        self.begun, self.done = asyncio.Event(), asyncio.Event()
        self.closed: list[State] = []

    def activities(self) -> list[Callable[..., Any]]:
        return [self.claim, self.assess, self.record, self.announce, self.lift, self.close]

    def try_(self, what: str) -> None:
        """Fail, as where the store is away, until `done`."""
        if self.slow == what:
            self.begun.set()
            if not self.done.is_set():
                raise TryAgain("the store is away")

    @activity.defn(name=do.CLAIM.name)
    async def claim(self, _: x.RepairRef) -> x.Claimed:
        return x.Claimed(owned=True)

    @activity.defn(name=do.ASSESS.name)
    async def assess(self, arg: x.AssessInput) -> x.Assessment:
        if arg.proposal is None:
            return x.Assessment(outcome="revised", proposal=a_proposal())
        return x.Assessment(outcome="stands")

    @activity.defn(name=do.RECORD.name)
    async def record(self, _: x.RecordInput) -> x.Done:
        self.try_("record")
        return x.Done(at=datetime.now(UTC))

    @activity.defn(name=do.ANNOUNCE.name)
    async def announce(self, _: x.AnnounceInput) -> x.Done:
        if self.slow == "announce":
            self.begun.set()
            await self.done.wait()
        return x.Done(at=datetime.now(UTC))

    @activity.defn(name=do.LIFT.name)
    async def lift(self, _: x.StepInput) -> x.StepDone:
        return x.StepDone(text="lifted")

    @activity.defn(name=do.CLOSE.name)
    async def close(self, arg: x.CloseInput) -> x.Done:
        self.closed.append(arg.event.to_state)
        return x.Done(at=datetime.now(UTC))


async def passed_on(handle: WorkflowHandle[Any, Any]) -> None:
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
    acts, queue = Slow(slow), f"slow-{uuid.uuid4().hex[:8]}"
    worker = Worker(
        temporal,
        task_queue=queue,
        workflows=[NodeRepair],
        activities=acts.activities(),
        workflow_runner=workflow_runner(),
    )
    async with worker:
        run = x.Run(repair_id="r-1", cluster="sim", node="n1")
        handle = await temporal.start_workflow(names.NODE_REPAIR, run, id=f"repair:{queue}", task_queue=queue)
        await acts.begun.wait()
        await handle.cancel()
        await passed_on(handle)
        acts.done.set()
        result = await asyncio.wait_for(handle.result(), 30)
    assert (result["state"], acts.closed) == (State.DISMISSED, [State.DISMISSED])
