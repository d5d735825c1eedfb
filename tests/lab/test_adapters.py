"""The adapters of a simulated cluster, over the real socket of a lab."""

from __future__ import annotations

import httpx
import pytest

from daytwo.domain.errors import DaytwoError, NotYet, UnknownAnswer, Unreachable
from daytwo.domain.seams import Act, ActKind, AlreadyDone, NotOurs, Outcome, Ownership, Request
from daytwo.domain.vocabulary import Mark
from daytwo.hardware.simulated import SimulatedHardware
from daytwo.lab import remote
from daytwo.lab.acts import Order
from daytwo.lab.server import Lab, Outage, OutageOrder
from daytwo.schedulers.simulated import SimulatedScheduler

MARK = Mark(repair_id="r-20261130-030000-abcde", text="GPU 3 off the bus")
IDLE, BUSY = "node-16", "node-01"


@pytest.fixture
def scheduler(lab: Lab, socket: str) -> SimulatedScheduler:
    return SimulatedScheduler(socket, "sim")


@pytest.fixture
def hardware(lab: Lab, socket: str) -> SimulatedHardware:
    return SimulatedHardware(socket, "sim")


async def write(request: object) -> None:
    """Send what an adapter describes, as the sender child does."""
    assert isinstance(request, Request), request
    transport = httpx.AsyncHTTPTransport(uds=request.socket)
    async with httpx.AsyncClient(transport=transport, base_url="http://lab") as client:
        answer = await client.request(request.method, request.path, json=request.body)
        assert answer.is_success, answer.text


async def quarantine(scheduler: SimulatedScheduler, node: str) -> None:
    for act in scheduler.quarantine_acts("sim", node, MARK):
        await write(await scheduler.prepare(act))


async def booting(hardware: SimulatedHardware, kind: ActKind = ActKind.REBOOT) -> Act:
    """Order a boot of the idle node, and return the act with what was true before."""
    act = await hardware.baseline(Act(kind=kind, cluster="sim", node=IDLE, target=IDLE, mark=MARK))
    await write(await hardware.prepare(act))
    return act


async def test_workloads_name_all_nodes_of_a_job_and_what_its_owner_allows(scheduler: SimulatedScheduler) -> None:
    (job,) = await scheduler.workloads([BUSY])
    assert (len(job.nodes), job.gpus, job.opted_into_requeue, job.user) == (8, 64, True, "alice")


async def test_a_requeue_is_done_once_the_job_has_left(lab: Lab, scheduler: SimulatedScheduler) -> None:
    (act,) = scheduler.interrupt_acts("sim", BUSY, MARK, await scheduler.workloads([BUSY]))
    before = await scheduler.look(act)
    await write(await scheduler.prepare(act))
    completing = await scheduler.look(act)
    lab.skip(60)
    after = await scheduler.look(act)
    assert [look.outcome for look in (before, completing, after)] == [Outcome.NOT_DONE, Outcome.PENDING, Outcome.DONE]


async def test_a_job_that_already_restarted_elsewhere_is_not_requeued_again(
    lab: Lab, scheduler: SimulatedScheduler
) -> None:
    (act,) = scheduler.interrupt_acts("sim", BUSY, MARK, await scheduler.workloads([BUSY]))
    await write(await scheduler.prepare(act))
    lab.skip(600)
    assert isinstance(await scheduler.prepare(act), AlreadyDone)


async def test_a_reboot_is_pending_while_it_boots_and_proven_by_its_boot_time(
    lab: Lab, scheduler: SimulatedScheduler, hardware: SimulatedHardware
) -> None:
    await quarantine(scheduler, IDLE)
    act = await booting(hardware)
    lab.skip(60)
    during = await hardware.look(act)
    lab.skip(600)
    after = await hardware.look(act)
    assert (during.outcome, after.outcome, after.proof_type) == (Outcome.PENDING, Outcome.DONE, "slurm-boot-time")


async def test_a_reboot_loses_the_drain_but_not_the_reservation(
    lab: Lab, scheduler: SimulatedScheduler, hardware: SimulatedHardware
) -> None:
    await quarantine(scheduler, IDLE)
    await booting(hardware)
    lab.skip(700)
    facts = await scheduler.node(IDLE)
    assert (facts.ownership, facts.drained_by, facts.mark_repair_id) == (Ownership.HALF_DONE, "nobody", MARK.repair_id)


async def test_a_reboot_is_ordered_once(lab: Lab, scheduler: SimulatedScheduler, hardware: SimulatedHardware) -> None:
    await quarantine(scheduler, IDLE)
    act = await booting(hardware)
    with pytest.raises(NotYet, match="under way"):
        await hardware.prepare(act)
    lab.skip(700)
    assert isinstance(await hardware.prepare(act), AlreadyDone)


async def test_a_node_that_is_not_ours_is_not_rebooted(hardware: SimulatedHardware) -> None:
    act = await hardware.baseline(Act(kind=ActKind.REBOOT, cluster="sim", node=IDLE, target=IDLE, mark=MARK))
    assert isinstance(await hardware.prepare(act), NotOurs)


async def test_an_order_that_never_came_is_told_from_one_under_way(lab: Lab, hardware: SimulatedHardware) -> None:
    act = await hardware.baseline(Act(kind=ActKind.REBOOT, cluster="sim", node=BUSY, target=BUSY, mark=MARK))
    before = await hardware.look(act)
    lab.acts.do(Order(kind=ActKind.REBOOT, node=BUSY))
    # The node still runs its job, with its old boot time.
    assert (before.outcome, (await hardware.look(act)).outcome) == (Outcome.NOT_DONE, Outcome.PENDING)


async def test_a_power_cycle_is_proven_by_the_bmc(
    lab: Lab, scheduler: SimulatedScheduler, hardware: SimulatedHardware
) -> None:
    await quarantine(scheduler, IDLE)
    act = await booting(hardware, ActKind.POWER_CYCLE)
    during = await hardware.look(act)
    lab.skip(700)
    after = await hardware.look(act)
    assert (during.outcome, after.outcome, after.proof_type) == (Outcome.PENDING, Outcome.DONE, "bmc")


async def test_a_machine_that_somebody_switched_off_is_not_powered_up(
    lab: Lab, scheduler: SimulatedScheduler, hardware: SimulatedHardware
) -> None:
    await quarantine(scheduler, IDLE)
    lab.fleet.switch_off(lab.fleet.node(IDLE))
    act = await hardware.baseline(Act(kind=ActKind.POWER_CYCLE, cluster="sim", node=IDLE, target=IDLE, mark=MARK))
    assert isinstance(await hardware.prepare(act), NotOurs)


async def test_the_bmc_of_another_machine_is_not_touched(
    scheduler: SimulatedScheduler, hardware: SimulatedHardware
) -> None:
    await quarantine(scheduler, IDLE)
    known = {"bmc_serial": "SIM-OTHER", "resets": 0}
    act = Act(kind=ActKind.POWER_CYCLE, cluster="sim", node=IDLE, target=IDLE, mark=MARK, baseline=known)
    assert isinstance(await hardware.prepare(act), NotOurs)


@pytest.mark.parametrize(
    ("outage", "error"),
    [(Outage.GARBAGE, UnknownAnswer), (Outage.PARTIAL, UnknownAnswer), (Outage.REFUSE, Unreachable)],
)
async def test_an_outage_is_never_an_empty_answer(
    lab: Lab, scheduler: SimulatedScheduler, outage: Outage, error: type[DaytwoError]
) -> None:
    lab.outage = OutageOrder(mode=outage)
    with pytest.raises(error):
        await scheduler.facts()
    with pytest.raises(error):
        await scheduler.workloads([BUSY])


async def test_a_scheduler_that_hangs_is_unreachable(lab: Lab, socket: str) -> None:
    lab.outage = OutageOrder(mode=Outage.HANG)
    with pytest.raises(Unreachable):
        await remote.rows(socket, "/nodes", key="nodes", timeout_seconds=0.2)


async def test_a_lab_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="no-such"):
        await SimulatedScheduler("/tmp/no-such.sock", "sim").facts()
