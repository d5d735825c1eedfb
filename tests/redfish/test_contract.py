"""BMCs by Redfish keep what every hardware driver promises."""

from __future__ import annotations

from functools import cached_property

import pytest

from daytwo.domain.seams import Ownership
from daytwo.hardware.redfish import RedfishHardware
from tests.contracts.hardware import HardwareContract
from tests.redfish.bmc import SYSTEM
from tests.redfish.conftest import Desk, an_act


class Machine:
    """A machine behind a BMC, drained by our repair."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.act = desk, an_act()

    @cached_property
    def hardware(self) -> RedfishHardware:
        return self.desk.driver()

    def orders(self) -> int:
        return len(self.desk.bmc.resets)

    async def come_up(self) -> None:
        """The BMC's machine is up at once."""

    async def another_marks_the_node(self) -> None:
        self.desk.marks.ownership = Ownership.FOREIGN

    async def becomes_busy(self) -> None:
        self.desk.marks.busy = True

    async def is_another_machine(self) -> None:
        self.desk.bmc.documents[SYSTEM] |= {"UUID": "99999999-0042-3510-8052-b4c04f4d3732", "SerialNumber": "X"}


@pytest.fixture
def hardware_world(desk: Desk) -> Machine:
    return Machine(desk)


class TestRedfish(HardwareContract):
    """Before the BMC that can misbehave, and here does not."""
