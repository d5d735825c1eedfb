"""The activity `act` before a BMC: what the agent said of itself goes into the act, and the machine is reset once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from daytwo.store.tables import IntentRow
from tests.redfish.acting import NOW, STEP, activity
from tests.redfish.bmc import PASSWORD
from tests.redfish.conftest import IDENTITY, REPAIR, Desk


async def test_what_the_agent_said_is_in_the_act_and_the_machine_is_reset_once(desk: Desk, tmp_path: Path) -> None:
    doing = activity(desk, tmp_path, identity=IDENTITY, identity_at=NOW)
    assert "power On" in (await doing.act(STEP)).proof
    assert "power On" in (await doing.act(STEP)).proof
    with desk.store.read() as session:
        act = session.get_one(IntentRow, f"{REPAIR}/0/power-cycle").act
    assert (act["baseline"]["identity"], len(desk.bmc.resets), PASSWORD in str(act)) == (IDENTITY, 1, False)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({}, "never said which machine it is"),
        ({"identity": IDENTITY, "identity_at": NOW - timedelta(days=40)}, "40 days ago"),
        ({"identity": {"system_uuid": "1" * 32}, "identity_at": NOW}, "is not there"),
    ],
)
async def test_a_machine_that_is_not_known_is_for_a_person(
    desk: Desk, tmp_path: Path, node: dict[str, Any], why: str
) -> None:
    with pytest.raises(ApplicationError, match=why) as caught:
        await activity(desk, tmp_path, **node).act(STEP)
    assert (caught.value.non_retryable, caught.value.type, desk.bmc.resets) == (True, "Refused", [])
