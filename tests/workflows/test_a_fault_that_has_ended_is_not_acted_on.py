"""A fault that ends between its approval and the act is waited for, and not booted away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.client import Client

from activities import signatures as do
from daytwo.domain import exchange as x
from daytwo.domain.vocabulary import Action, Moment, State
from tests.builders import a_proposal
from tests.workflows.acts import Acts, a_repair_by
from workflows import names

APPROVAL = x.Approval(decision_id="d-1", actor="cli:ann", action=Action.REBOOT, moment=Moment.NOW, at=datetime.now(UTC))


class Calm(Acts):
    """A node whose fault reads clear, not yet for long enough; it fires again when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_firing = False
        self.looks = self.rights = 0

    def activities(self) -> list[Callable[..., Any]]:
        return [*super().activities(), self.take_right]

    @activity.defn(name=do.ASSESS.name)
    async def assess(self, arg: x.AssessInput) -> x.Assessment:
        self.looks += 1
        outcome: Any = "stands" if self.is_firing else "unsettled"
        return x.Assessment(outcome=outcome, why="clear, but not for long enough", marks="ours", wait_seconds=200)

    @activity.defn(name=do.TAKE_RIGHT.name)
    async def take_right(self, _: x.StepInput) -> x.Right:
        self.rights += 1
        return x.Right(granted=False)


async def test_a_waiting_repair_takes_no_right_while_its_fault_reads_clear(temporal: Client) -> None:
    acts = Calm()
    standing = {"proposal": a_proposal(), "revision": 1, "announced_revision": 1, "approval": APPROVAL}
    async with a_repair_by(temporal, acts, state=State.WAITING, **standing) as repair:
        await looked(acts, repair, 3)
        assert acts.rights == 0
        acts.is_firing = True
        await looked(acts, repair, acts.looks + 2)
    assert acts.rights > 0


async def looked(acts: Calm, repair: Any, times: int) -> None:
    """Have the repair look until it has done so often enough."""
    while acts.looks < times:
        await repair.signal(names.LOOK_AGAIN)
        await asyncio.sleep(0.05)
