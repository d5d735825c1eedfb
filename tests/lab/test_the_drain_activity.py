"""The activities `take-right` and `drain` on a simulated scheduler: which work is requeued, and which is waited for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.scheduler import SchedulerActivities
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Adapters
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.vocabulary import Action
from daytwo.intake import declare
from daytwo.intents import Ledger
from daytwo.lab.acts import Order
from daytwo.lab.definition import CLUSTER, lab_definition
from daytwo.lab.server import Lab, Outage, OutageOrder
from daytwo.notify.log import LogNotifier
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, NodeRow
from tests.rows import keep

NODE = "node-01"
NOW = datetime.now(UTC)
REF = RepairRef(repair_id="r-20261130-030000-abcde", cluster=CLUSTER, node=NODE)


@pytest.fixture
async def doing(store: Store, lab: Lab, socket: str, tmp_path: Path) -> SchedulerActivities:
    """The activities of a scheduler for a repair of a busy node that is quarantined."""
    declare(store, lab_definition(socket, nodes=16), now=NOW)
    with store.write() as session:
        row = session.get_one(NodeRow, (CLUSTER, NODE))
        repairs.open_row(session, REF.repair_id, row, why="test", opened_by="policy", policy_revision=1, now=NOW)
    adapters = Adapters(store)
    found = SchedulerActivities(
        World(store, adapters, Ledger(store, adapters), LogNotifier(tmp_path / "notices.jsonl"))
    )
    await found.quarantine(step("quarantine"))
    return found


def step(stage: str) -> StepInput:
    return StepInput(ref=REF, stage=stage, action=Action.POWER_CYCLE, since=NOW)


def was_requeued(store: Store, job: str, ago: timedelta) -> None:
    """Another repair has requeued this job."""
    at, key = datetime.now(UTC) - ago, f"r-other/drain/requeue/{job}"
    row = IntentRow(
        id=key,
        repair_id="r-other",
        cluster=CLUSTER,
        node="node-02",
        driver=f"scheduler:{CLUSTER}",
        kind="requeue",
        target=job,
        state="proven",
        tries=1,
        created_at=at,
        updated_at=at,
    )
    keep(store, row)


def jobs_of_node(lab: Lab) -> list[tuple[str, str]]:
    return [(job.id, job.state) for job in lab.fleet.queue.on(NODE)]


async def test_a_job_of_a_node_that_does_not_answer_is_not_requeued(doing: SchedulerActivities, lab: Lab) -> None:
    before = jobs_of_node(lab)
    lab.acts.do(Order.model_validate({"kind": "power-off", "node": NODE, "by": "the PDU"}))
    with pytest.raises(ApplicationError, match="does not answer, so nothing is requeued"):
        await doing.drain(step("drain"))
    assert (jobs_of_node(lab), bool(before)) == (before, True)


async def test_a_node_that_its_scheduler_has_given_up_is_drained(doing: SchedulerActivities, lab: Lab) -> None:
    lab.acts.do(Order.model_validate({"kind": "power-off", "node": NODE, "by": "the PDU"}))
    lab.skip(lab.fleet.timings.slurmd_timeout + 60)
    done = await doing.drain(step("drain"))
    assert (done.text, done.interrupted) == ("no job runs on the node", False)


async def test_a_job_that_was_interrupted_of_late_is_waited_for(
    doing: SchedulerActivities, lab: Lab, store: Store
) -> None:
    ((job, _),) = jobs_of_node(lab)
    was_requeued(store, job, timedelta(minutes=20))
    right = await doing.take_right(step("right"))
    assert (right.granted, f"job {job} was interrupted" in right.text) == (False, True)


async def test_a_job_that_was_interrupted_long_ago_may_be_again(
    doing: SchedulerActivities, lab: Lab, store: Store
) -> None:
    ((job, _),) = jobs_of_node(lab)
    was_requeued(store, job, timedelta(hours=2))  # a day is 24 minutes in a lab that runs 60 times as fast
    assert (await doing.take_right(step("right"))).granted


async def test_work_is_not_interrupted_while_it_is_not_known_which(
    doing: SchedulerActivities, lab: Lab, store: Store
) -> None:
    was_requeued(store, "1", timedelta(minutes=20))
    lab.outage = OutageOrder(mode=Outage.GARBAGE)
    right = await doing.take_right(step("right"))
    assert (right.granted, "it is not known which jobs" in right.text) == (False, True)


async def test_a_job_of_a_node_that_answers_is_requeued(doing: SchedulerActivities, lab: Lab) -> None:
    with pytest.raises(ApplicationError):
        await doing.drain(step("drain"))
    assert [state for _, state in jobs_of_node(lab)] == ["COMPLETING"]
