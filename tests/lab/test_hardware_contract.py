"""The BMCs of the simulated fleet keep what every hardware driver promises."""

from __future__ import annotations

import pytest

from daytwo.domain.seams import Act, ActKind
from daytwo.domain.vocabulary import Mark
from daytwo.hardware.simulated import SimulatedHardware
from daytwo.lab.acts import Order
from daytwo.lab.jobs import Kind
from daytwo.lab.server import Lab
from daytwo.schedulers.simulated import SimulatedScheduler
from tests.contracts.hardware import HardwareContract, run

NODE = "node-16"
MARK = Mark(repair_id="r-20261130-030000-abcde", text="GPU 3 off the bus")


class Machine:
    """An idle node of a lab that the repair has drained."""

    def __init__(self, lab: Lab, socket: str) -> None:
        self.lab = lab
        self.hardware = SimulatedHardware(socket, "sim")
        self.act = Act(
            kind=ActKind.POWER_CYCLE, cluster="sim", node=NODE, target=NODE, mark=MARK, baseline={"boot_id": "boot-1"}
        )

    def orders(self) -> int:
        return self.lab.fleet.node(NODE).resets

    async def come_up(self) -> None:
        self.lab.skip(700)

    async def another_marks_the_node(self) -> None:
        for kind in ("undrain", "drain"):
            self.lab.acts.do(Order.model_validate({"kind": kind, "node": NODE, "reason": "mine", "by": "anna"}))

    async def becomes_busy(self) -> None:
        job = self.lab.fleet.queue.submit(Kind("train", "frank", "nlp", 1, (1, 1), may_requeue=True, opted_in=True))
        self.lab.fleet.queue.start(job, (NODE,))

    async def is_another_machine(self) -> None:
        self.lab.fleet.node(NODE).serial = "SIM-ANOTHER"


@pytest.fixture
async def hardware_world(lab: Lab, socket: str) -> Machine:
    scheduler = SimulatedScheduler(socket, "sim")
    for act in scheduler.quarantine_acts("sim", NODE, MARK):
        await run(await scheduler.prepare(act))
    return Machine(lab, socket)


class TestSimulatedHardware(HardwareContract):
    """Over the real socket of a lab."""
