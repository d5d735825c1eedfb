"""The scheduler of the simulated fleet keeps what every scheduler adapter promises."""

from __future__ import annotations

import pytest

from daytwo.lab.acts import Order
from daytwo.lab.faults import DRAINS, Break
from daytwo.lab.jobs import OPT_IN, Kind
from daytwo.lab.server import Lab
from daytwo.schedulers.simulated import SimulatedScheduler
from tests.contracts.scheduler import CLUSTER, SchedulerContract


class Hands:
    """The people and programs around the idle node of a lab."""

    def __init__(self, lab: Lab, socket: str) -> None:
        self.lab = lab
        self.node = "node-16"
        self.scheduler = SimulatedScheduler(socket, CLUSTER)

    async def start_job(self, node: str, *, opted: bool) -> str:
        kind = Kind("train", "frank", "nlp", 2, (4, 4), may_requeue=True, opted_in=opted)
        job = self.lab.fleet.queue.submit(kind)
        self.lab.fleet.queue.start(job, (node,))
        assert (job.comment == OPT_IN) == opted
        return job.id

    async def person_drains(self, node: str, reason: str) -> None:
        self._type("drain", node, reason=reason)

    async def lift_drain_by_person(self, node: str) -> None:
        self._type("undrain", node)

    async def person_reserves(self, node: str, name: str) -> None:
        order = {"kind": "reserve", "node": node, "reservation": name, "by": "anna"}
        self.lab.acts.do(Order.model_validate(order))

    async def scheduler_drains(self, node: str) -> str:
        self.lab.fleet.break_node(node, Break(fault="slurm-drained"))
        return DRAINS["slurm-drained"][0]

    def _type(self, kind: str, node: str, reason: str = "") -> None:
        self.lab.acts.do(Order.model_validate({"kind": kind, "node": node, "reason": reason, "by": "anna"}))


@pytest.fixture
def scheduler_world(running_lab: Lab, socket: str) -> Hands:
    return Hands(running_lab, socket)


class TestSimulatedScheduler(SchedulerContract):
    """On a lab whose time runs."""
