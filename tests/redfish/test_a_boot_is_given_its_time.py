"""The limit of a boot counts from the last stage that its BMC told of, and still ends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.hardware import HardwareActivities
from tests.redfish.acting import NOW, STEP, activity
from tests.redfish.conftest import IDENTITY, Desk

LIMIT = timedelta(minutes=40)
MEMORY, PCI = "MemoryInitializationStarted", "PCIResourceConfigStarted"


async def booting(desk: Desk, tmp_path: Path) -> HardwareActivities:
    """A machine that was reset and does not come up."""
    doing = activity(desk, tmp_path, identity=IDENTITY, identity_at=NOW)
    desk.bmc.works = False
    await asked(doing, "NotYet")
    return doing


async def asked(doing: HardwareActivities, kind: str) -> str:
    with pytest.raises(ApplicationError) as caught:
        await doing.act(STEP)
    assert caught.value.type == kind, caught.value
    return str(caught.value)


async def passes(desk: Desk, doing: HardwareActivities, stage: str, time: timedelta, kind: str = "NotYet") -> str:
    """After `time` the machine is in this stage of its boot."""
    desk.clock.ahead += time
    desk.bmc.boot(stage)
    return await asked(doing, kind)


async def test_a_boot_whose_progress_moves_is_given_more_time(desk: Desk, tmp_path: Path) -> None:
    doing = await booting(desk, tmp_path)
    await passes(desk, doing, MEMORY, LIMIT * 0.9)
    await passes(desk, doing, PCI, LIMIT * 0.9)
    text = await passes(desk, doing, PCI, LIMIT * 1.1, "Failed")
    assert f"last seen: boot {PCI}" in text


async def test_a_boot_that_stands_still_is_given_its_limit(desk: Desk, tmp_path: Path) -> None:
    doing = await booting(desk, tmp_path)
    await passes(desk, doing, MEMORY, timedelta(minutes=1))
    await passes(desk, doing, MEMORY, LIMIT * 1.1, "Failed")


async def test_a_machine_that_boots_again_and_again_is_not_waited_for_without_end(desk: Desk, tmp_path: Path) -> None:
    doing = await booting(desk, tmp_path)
    for stage in (MEMORY, PCI, MEMORY, PCI):
        await passes(desk, doing, stage, LIMIT * 0.7)
    await passes(desk, doing, MEMORY, LIMIT * 0.7, "Failed")
