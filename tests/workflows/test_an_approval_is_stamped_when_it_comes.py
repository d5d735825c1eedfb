"""The stamp `approved` tells when a person approved, however long the rules then keep the act waiting."""

from __future__ import annotations

import asyncio

from temporalio import activity
from temporalio.client import Client

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.vocabulary import DecisionKind, State
from tests.builders import a_proposal
from tests.workflows.acts import Acts, a_repair_by
from workflows import names


class Frozen(Acts):
    """An approval is taken, and then waits for a thaw."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()

    @activity.defn(name=do.AUTHORISE.name)
    async def authorise(self, arg: x.AuthoriseInput) -> x.Verdict:
        if arg.state is State.PROPOSED:
            return x.Verdict(status="received", kind=DecisionKind.APPROVE)
        self.waits.set()
        return x.Verdict(status="wait", kind=DecisionKind.APPROVE, why="frozen by cli:lea", wait_seconds=60)


async def test_an_approval_that_waits_for_a_thaw_is_stamped_already(temporal: Client) -> None:
    acts = Frozen()
    async with a_repair_by(temporal, acts, state=State.PROPOSED, revision=1, proposal=a_proposal()) as repair:
        await repair.execute_update(names.DECIDE, "d-1")
        await asyncio.wait_for(acts.waits.wait(), 20)
        found = await repair.query(names.STATE_QUERY)
        await repair.terminate("the test is over")
    assert (found["state"], "approved" in found["stamps"]) == ("approved", True)
