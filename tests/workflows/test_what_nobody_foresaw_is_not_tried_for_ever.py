"""A bug in a step: after some minutes of tries the repair asks a person, instead of hanging where it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities import signatures as do
from activities.boundary import MOST_UNFORESEEN, implements
from daytwo.domain.errors import NotYet
from daytwo.domain.exchange import AuthoriseInput, RepairRef, StepDone, StepInput, Verdict
from daytwo.domain.vocabulary import Action, State

REF = RepairRef(repair_id="r-1", cluster="sim", node="node-01")
STEP = StepInput(ref=REF, stage="act-1", action=Action.REBOOT, since=datetime.now(UTC))


class Quiet:
    """As much of a world as the boundary asks."""

    async def say_waiting(self, ref: RepairRef, why: str) -> None:
        """Nobody listens."""


class Buggy:
    """Activities with a bug; a condition that has not come true may be among its tries."""

    def __init__(self) -> None:
        self.world: Any = Quiet()
        self.not_yet = False

    @implements(do.ACT)
    async def act(self, arg: StepInput) -> StepDone:
        if self.not_yet:
            raise NotYet("not yet")
        raise KeyError("bmc")

    @implements(do.AUTHORISE)
    async def authorise(self, arg: AuthoriseInput) -> Verdict:
        raise KeyError("decision")


async def tries(work: Any, arg: Any, times: int) -> list[type[BaseException]]:
    """How so many tries end."""
    ends = []
    for _ in range(times):
        with pytest.raises((KeyError, ApplicationError)) as raised:
            await ActivityEnvironment().run(work, arg)
        ends.append(raised.type)
    return ends


async def test_a_step_that_fails_so_again_and_again_is_given_up_and_says_why() -> None:
    buggy = Buggy()
    assert set(await tries(buggy.act, STEP, MOST_UNFORESEEN - 1)) == {KeyError}
    with pytest.raises(ApplicationError, match="KeyError: 'bmc'") as raised:
        await ActivityEnvironment().run(buggy.act, STEP)
    assert (raised.value.non_retryable, raised.value.type) == (True, "Failed")


async def test_only_failures_in_a_row_count() -> None:
    buggy = Buggy()
    await tries(buggy.act, STEP, MOST_UNFORESEEN - 1)
    buggy.not_yet = True
    await tries(buggy.act, STEP, 1)
    buggy.not_yet = False
    assert await tries(buggy.act, STEP, 1) == [KeyError]


async def test_a_decision_is_judged_again_for_as_long_as_it_takes() -> None:
    asked = AuthoriseInput(
        ref=REF, decision_id="d-1", state=State.PROPOSED, revision=1, disturbed=False, interrupted=False
    )
    assert set(await tries(Buggy().authorise, asked, MOST_UNFORESEEN + 5)) == {KeyError}
