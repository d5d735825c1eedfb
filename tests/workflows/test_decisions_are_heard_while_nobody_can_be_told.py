"""A channel to people that is away keeps no repair from hearing what they decide in another way."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import DecisionKind, State
from tests.builders import a_proposal
from tests.workflows.acts import Acts, a_repair_by
from workflows import names


class NobodyIsTold(Acts):
    """The channel fails each time, and is tried again."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0
        self.events: list[Event] = []

    @activity.defn(name=do.ANNOUNCE.name)
    async def announce(self, _: x.AnnounceInput) -> x.Done:
        self.tries += 1
        raise ApplicationError("nobody could be told", type="Unreachable")

    @activity.defn(name=do.AUTHORISE.name)
    async def authorise(self, arg: x.AuthoriseInput) -> x.Verdict:
        return x.Verdict(status="accepted", kind=DecisionKind.HOLD, actor="cli:ann")

    @activity.defn(name=do.RECORD.name)
    async def record(self, arg: x.RecordInput) -> x.Done:
        self.events.append(arg.event)
        return x.Done(at=datetime.now(UTC))


@pytest.mark.parametrize("revision", [0, 1], ids=["a first proposal", "one that stands"])
async def test_a_hold_is_heard(temporal: Client, revision: int) -> None:
    acts = NobodyIsTold()
    standing = {"proposal": a_proposal(), "revision": 1} if revision else {}
    async with a_repair_by(temporal, acts, state=State.PROPOSED, **standing) as repair:
        async with asyncio.timeout(10):
            await repair.execute_update(names.DECIDE, "d-1")
            await _until(acts, Event.HELD)
    assert acts.tries <= 6


async def _until(acts: NobodyIsTold, event: Event) -> None:
    for _ in range(1_000):
        if event in acts.events:
            return
        await asyncio.sleep(0.05)
