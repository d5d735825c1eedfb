"""`node-repair` on a real Temporal with activities that answer at once, for what the plane takes too long to show."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
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


class Acts:
    """The activities of a repair up to its waiting. `closed` are the states in which it ended."""

    def __init__(self) -> None:
        self.closed: list[State] = []

    def activities(self) -> list[Callable[..., Any]]:
        """All that a worker registers."""
        return [self.claim, self.assess, self.authorise, self.record, self.announce, self.mark, self.lift, self.close]

    @activity.defn(name=do.CLAIM.name)
    async def claim(self, _: x.RepairRef) -> x.Claimed:
        return x.Claimed(owned=True)

    @activity.defn(name=do.ASSESS.name)
    async def assess(self, arg: x.AssessInput) -> x.Assessment:
        if arg.proposal is None:
            return x.Assessment(outcome="revised", proposal=a_proposal())
        return x.Assessment(outcome="stands", marks="ours", idle=False)

    @activity.defn(name=do.AUTHORISE.name)
    async def authorise(self, arg: x.AuthoriseInput) -> x.Verdict:
        raise AssertionError(f"nobody decides here: {arg.decision_id}")

    @activity.defn(name=do.RECORD.name)
    async def record(self, _: x.RecordInput) -> x.Done:
        return x.Done(at=datetime.now(UTC))

    @activity.defn(name=do.ANNOUNCE.name)
    async def announce(self, _: x.AnnounceInput) -> x.Done:
        return x.Done(at=datetime.now(UTC))

    @activity.defn(name=do.QUARANTINE.name)
    async def mark(self, _: x.StepInput) -> x.StepDone:
        return x.StepDone(text="marked")

    @activity.defn(name=do.LIFT.name)
    async def lift(self, _: x.StepInput) -> x.StepDone:
        return x.StepDone(text="lifted")

    @activity.defn(name=do.CLOSE.name)
    async def close(self, arg: x.CloseInput) -> x.Done:
        self.closed.append(arg.event.to_state)
        return x.Done(at=datetime.now(UTC))


@contextlib.asynccontextmanager
async def a_repair_by(temporal: Client, acts: Acts, **state: Any) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    """One repair that is carried out by these activities; `state` is where it stands."""
    queue = f"acts-{uuid.uuid4().hex[:8]}"
    worker = Worker(
        temporal,
        task_queue=queue,
        workflows=[NodeRepair],
        activities=acts.activities(),
        workflow_runner=workflow_runner(),
    )
    run = x.Run(repair_id="r-1", cluster="sim", node="n1", **state)
    async with worker:
        yield await temporal.start_workflow(names.NODE_REPAIR, run, id=f"repair:{queue}", task_queue=queue)
