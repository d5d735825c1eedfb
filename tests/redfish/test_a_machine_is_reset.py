"""The common path on a BMC with sessions: identity, reset, proof."""

from __future__ import annotations

import pytest

from daytwo.domain.seams import ActKind, AlreadyDone, HttpsRequest, Outcome
from daytwo.sending import Sender, Sent
from tests.redfish.bmc import RESET, SESSIONS, Answer
from tests.redfish.conftest import Desk, an_act


async def sent(prepared: object) -> Sent:
    """Send what was prepared, through the child."""
    assert isinstance(prepared, HttpsRequest), prepared
    async with Sender(prepared, 5) as child:
        return await child.go()


async def test_a_power_cycle_is_ordered_and_proven_by_the_reset_time(desk: Desk) -> None:
    driver = desk.driver()
    act = await driver.baseline(an_act())
    assert (await sent(await driver.prepare(act))).ok
    look = await driver.look(act)
    assert desk.bmc.resets == [{"path": RESET, "ResetType": "PowerCycle"}]
    assert (look.outcome, look.proof_type) == (Outcome.DONE, "bmc")
