"""Temporal's own cancel takes effect whatever the repair is doing when it comes, also what does not notice it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.vocabulary import State
from tests.builders import a_proposal
from workers.sandbox import workflow_runner
from workflows import names
from workflows.node_repair import NodeRepair


class SlowNews:
    """The activities of a proposal, without a plane. Announcing takes until `told`, whoever cancels it meanwhile."""

    def __init__(self) -> None:
        self.telling, self.told = asyncio.Event(), asyncio.Event()
        self.closed: list[State] = []

    def activities(self) -> list[Callable[..., Any]]:
        return [self.claim, self.assess, self.record, self.announce, self.lift, self.close]

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
        return x.Done(at=datetime.now(UTC))

    @activity.defn(name=do.ANNOUNCE.name)
    async def announce(self, _: x.AnnounceInput) -> x.Done:
        self.telling.set()
        await self.told.wait()
        return x.Done(at=datetime.now(UTC))

    @activity.defn(name=do.LIFT.name)
    async def lift(self, _: x.StepInput) -> x.StepDone:
        return x.StepDone(text="lifted")

    @activity.defn(name=do.CLOSE.name)
    async def close(self, arg: x.CloseInput) -> x.Done:
        self.closed.append(arg.event.to_state)
        return x.Done(at=datetime.now(UTC))


async def passed_on(handle: WorkflowHandle[Any, Any]) -> None:
    """Until the workflow has seen the cancel, and has asked its activity to end."""
    for _ in range(200):
        events = (await handle.fetch_history()).events
        if any(event.HasField("activity_task_cancel_requested_event_attributes") for event in events):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the cancel was not passed on")


async def test_a_cancel_that_comes_while_people_are_told_takes_the_proposal_back(temporal: Client) -> None:
    news, queue = SlowNews(), f"news-{uuid.uuid4().hex[:8]}"
    worker = Worker(
        temporal,
        task_queue=queue,
        workflows=[NodeRepair],
        activities=news.activities(),
        workflow_runner=workflow_runner(),
    )
    async with worker:
        run = x.Run(repair_id="r-1", cluster="sim", node="n1")
        handle = await temporal.start_workflow(names.NODE_REPAIR, run, id=f"repair:{queue}", task_queue=queue)
        await news.telling.wait()
        await handle.cancel()
        await passed_on(handle)
        news.told.set()
        result = await asyncio.wait_for(handle.result(), 30)
    assert (result["state"], news.closed) == (State.DISMISSED, [State.DISMISSED])
