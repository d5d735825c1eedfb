"""What every scheduler adapter promises, as tests: subclass `SchedulerContract` beside a fixture `scheduler_world`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest

from daytwo.domain.errors import NotFound
from daytwo.domain.seams import (
    Act,
    AlreadyDone,
    Command,
    NodeFacts,
    NotOurs,
    Outcome,
    Ownership,
    Request,
    Scheduler,
    Send,
)
from daytwo.domain.vocabulary import Mark, Workload
from daytwo.sending import Sender

CLUSTER = "contract"
MARK = Mark(repair_id="r-20261130-142100-x7k2q", text="GPU 5 off the bus (Xid 79)")
ANOTHER = Mark(repair_id="r-20261130-150000-abcde", text="NVLink error (Xid 74)")


class SchedulerWorld(Protocol):
    """A scheduler of which one node is clean and free, and the hands of the people and programs around it."""

    scheduler: Scheduler
    node: str

    async def start_job(self, node: str, *, opted: bool) -> str:
        """Start a long job that may be requeued; `opted`: its owner allows daytwo to. Returns its id, when it runs."""

    async def person_drains(self, node: str, reason: str) -> None:
        """A person drains the node, whatever was there before."""

    async def lift_drain_by_person(self, node: str) -> None:
        """A person takes the drain off, whoever's it was."""

    async def person_reserves(self, node: str, name: str) -> None:
        """A person reserves the node for a maintenance that begins now, whatever was there before."""

    async def scheduler_drains(self, node: str) -> str:
        """The scheduler drains the node by itself. Returns its reason, when it is there."""


async def run(send: Send) -> None:
    """Carry out one write as the ledger does, through the sender child. A refusal is an assertion error."""
    async with Sender(send, 10.0) as child:
        sent = await child.go()
    assert sent.ok, sent.error


async def carry_out(world: SchedulerWorld, acts: Iterable[Act]) -> list[type]:
    """Prepare and write each act. Returns what each preparation was."""
    kinds = []
    for act in acts:
        prepared = await world.scheduler.prepare(act)
        kinds.append(type(prepared))
        if isinstance(prepared, Command | Request):
            await run(prepared)
    return kinds


async def quarantine(world: SchedulerWorld, mark: Mark = MARK) -> list[type]:
    return await carry_out(world, world.scheduler.quarantine_acts(CLUSTER, world.node, mark))


async def release(world: SchedulerWorld, mark: Mark = MARK) -> list[type]:
    return await carry_out(world, world.scheduler.release_acts(CLUSTER, world.node, mark))


async def facts_of(world: SchedulerWorld) -> NodeFacts:
    return await world.scheduler.node(world.node)


async def job_of(world: SchedulerWorld, job_id: str) -> Workload | None:
    return next((job for job in await world.scheduler.workloads([world.node]) if job.id == job_id), None)


async def requeue_act(world: SchedulerWorld, job_id: str) -> Act:
    job = await job_of(world, job_id)
    assert job is not None
    (act,) = world.scheduler.interrupt_acts(CLUSTER, world.node, MARK, [job])
    return act


async def until_gone(world: SchedulerWorld, job_id: str) -> None:
    async with asyncio.timeout(20):
        while await job_of(world, job_id) is not None:
            await asyncio.sleep(0.05)


class SchedulerContract:
    """Promises of `daytwo.domain.seams.Scheduler`."""

    async def test_a_clean_node_is_free(self, scheduler_world: SchedulerWorld) -> None:
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.drained_by, facts.mark_repair_id) == (Ownership.FREE, "nobody", None)

    async def test_all_nodes_are_told_in_one_call(self, scheduler_world: SchedulerWorld) -> None:
        told = {facts.node: facts.partitions for facts in await scheduler_world.scheduler.facts()}
        assert told[scheduler_world.node]

    async def test_it_says_when_its_controller_was_started(self, scheduler_world: SchedulerWorld) -> None:
        ago = datetime.now(UTC) - await scheduler_world.scheduler.started_at()
        assert timedelta(seconds=-1) <= ago < timedelta(hours=1)

    async def test_it_says_how_long_it_takes_to_know_who_is_silent(self, scheduler_world: SchedulerWorld) -> None:
        assert 0 <= await scheduler_world.scheduler.late_after_seconds() <= 300

    async def test_a_quarantined_node_is_ours(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.drained_by, facts.mark_repair_id) == (Ownership.OURS, "ours", MARK.repair_id)

    async def test_a_second_quarantine_writes_nothing(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        assert await quarantine(scheduler_world) == [AlreadyDone, AlreadyDone]

    async def test_between_the_two_marks_the_node_is_half_done(self, scheduler_world: SchedulerWorld) -> None:
        acts = scheduler_world.scheduler.quarantine_acts(CLUSTER, scheduler_world.node, MARK)
        await carry_out(scheduler_world, acts[:1])
        assert (await facts_of(scheduler_world)).ownership is Ownership.HALF_DONE

    async def test_a_released_node_is_free(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        await release(scheduler_world)
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.mark_repair_id) == (Ownership.FREE, None)

    async def test_a_second_release_writes_nothing(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        await release(scheduler_world)
        assert await release(scheduler_world) == [AlreadyDone, AlreadyDone]

    async def test_two_releases_at_once_leave_the_node_free(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        for act in scheduler_world.scheduler.release_acts(CLUSTER, scheduler_world.node, MARK):
            both = await asyncio.gather(*(scheduler_world.scheduler.prepare(act) for _ in range(2)))
            # The slower of the two may be told that there is nothing left.
            sends = [run(one) for one in both if isinstance(one, Command | Request)]
            assert None in await asyncio.gather(*sends, return_exceptions=True)
        assert (await facts_of(scheduler_world)).ownership is Ownership.FREE

    @pytest.mark.parametrize("phase", ["before", "after"])
    async def test_look_tells_whether_each_mark_was_written(self, scheduler_world: SchedulerWorld, phase: str) -> None:
        acts = scheduler_world.scheduler.quarantine_acts(CLUSTER, scheduler_world.node, MARK)
        if phase == "after":
            await carry_out(scheduler_world, acts)
        expected = Outcome.NOT_DONE if phase == "before" else Outcome.DONE
        assert {(await scheduler_world.scheduler.look(act)).outcome for act in acts} == {expected}

    @pytest.mark.parametrize("phase", ["before", "after"])
    async def test_look_tells_whether_each_mark_was_lifted(self, scheduler_world: SchedulerWorld, phase: str) -> None:
        await quarantine(scheduler_world)
        acts = scheduler_world.scheduler.release_acts(CLUSTER, scheduler_world.node, MARK)
        if phase == "after":
            await carry_out(scheduler_world, acts)
        expected = Outcome.NOT_DONE if phase == "before" else Outcome.DONE
        assert {(await scheduler_world.scheduler.look(act)).outcome for act in acts} == {expected}

    async def test_a_persons_drain_is_never_overwritten(self, scheduler_world: SchedulerWorld) -> None:
        await scheduler_world.person_drains(scheduler_world.node, "psu swap, ask anna")
        assert await quarantine(scheduler_world) == [NotOurs, NotOurs]
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.drained_by, facts.reason) == (Ownership.FOREIGN, "person", "psu swap, ask anna")

    async def test_a_refusal_quotes_the_persons_reason(self, scheduler_world: SchedulerWorld) -> None:
        await scheduler_world.person_drains(scheduler_world.node, "psu swap, ask anna")
        drain = scheduler_world.scheduler.quarantine_acts(CLUSTER, scheduler_world.node, MARK)[1]
        refused = await scheduler_world.scheduler.prepare(drain)
        assert isinstance(refused, NotOurs)
        assert "psu swap, ask anna" in refused.found

    async def test_a_person_who_drains_over_our_mark_keeps_the_node(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        await scheduler_world.person_drains(scheduler_world.node, "mine now")
        assert (await release(scheduler_world))[0] is NotOurs
        assert (await facts_of(scheduler_world)).reason == "mine now"

    async def test_a_node_that_somebody_reserved_for_maintenance_says_so(self, scheduler_world: SchedulerWorld) -> None:
        await scheduler_world.person_reserves(scheduler_world.node, "psu-swap")
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.drained_by) == (Ownership.FREE, "nobody")
        assert "reserved it for maintenance: psu-swap" in facts.planned

    async def test_a_reservation_over_our_marks_is_seen_and_outlives_our_release(
        self, scheduler_world: SchedulerWorld
    ) -> None:
        await quarantine(scheduler_world)
        await scheduler_world.person_reserves(scheduler_world.node, "psu-swap")
        before = await facts_of(scheduler_world)
        await release(scheduler_world)
        after = await facts_of(scheduler_world)
        assert (before.ownership, after.ownership, after.reservations) == (
            *(Ownership.OURS, Ownership.FREE),
            ("psu-swap",),
        )
        assert before.planned == after.planned != ""

    async def test_a_lifted_drain_is_seen(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        await scheduler_world.lift_drain_by_person(scheduler_world.node)
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.mark_repair_id) == (Ownership.HALF_DONE, MARK.repair_id)

    async def test_a_lifted_drain_can_be_written_again(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world)
        await scheduler_world.lift_drain_by_person(scheduler_world.node)
        await quarantine(scheduler_world)
        assert (await facts_of(scheduler_world)).ownership is Ownership.OURS

    async def test_the_schedulers_own_drain_is_adopted_with_its_reason(self, scheduler_world: SchedulerWorld) -> None:
        reason = await scheduler_world.scheduler_drains(scheduler_world.node)
        before = await facts_of(scheduler_world)
        await quarantine(scheduler_world)
        after = await facts_of(scheduler_world)
        assert (before.drained_by, before.ownership) == ("scheduler", Ownership.FREE)
        assert after.ownership is Ownership.OURS
        assert f"(was: {reason}" in after.reason

    async def test_another_repairs_drain_is_not_touched(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world, ANOTHER)
        assert await quarantine(scheduler_world) == [NotOurs, NotOurs]
        assert (await release(scheduler_world))[0] is NotOurs
        assert (await facts_of(scheduler_world)).mark_repair_id == ANOTHER.repair_id

    async def test_what_an_earlier_repair_has_left_is_taken_over(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world, ANOTHER)
        acts = scheduler_world.scheduler.quarantine_acts(CLUSTER, scheduler_world.node, MARK)
        over = [act.model_copy(update={"baseline": {"over": [ANOTHER.repair_id]}}) for act in acts]
        assert NotOurs not in await carry_out(scheduler_world, over)
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.mark_repair_id, len(facts.reservations)) == (Ownership.OURS, MARK.repair_id, 2)

    async def test_what_an_earlier_repair_has_left_is_lifted(self, scheduler_world: SchedulerWorld) -> None:
        await quarantine(scheduler_world, ANOTHER)
        undrain, _ = scheduler_world.scheduler.release_acts(CLUSTER, scheduler_world.node, ANOTHER)
        _, unreserve = scheduler_world.scheduler.release_acts(CLUSTER, scheduler_world.node, MARK)
        old = unreserve.model_copy(update={"target": ANOTHER.repair_id})
        await carry_out(scheduler_world, [undrain, old])
        assert (await scheduler_world.scheduler.look(old)).outcome is Outcome.DONE
        assert (await facts_of(scheduler_world)).ownership is Ownership.FREE

    @pytest.mark.parametrize("is_drained", [True, False])
    async def test_a_drain_is_worded_anew_only_where_it_stands(
        self, scheduler_world: SchedulerWorld, is_drained: bool
    ) -> None:
        await quarantine(scheduler_world)
        if not is_drained:
            await scheduler_world.lift_drain_by_person(scheduler_world.node)
        removed = Mark(repair_id=MARK.repair_id, text="removed")
        _, drain = scheduler_world.scheduler.quarantine_acts(CLUSTER, scheduler_world.node, removed)
        await carry_out(scheduler_world, [drain.model_copy(update={"baseline": {"reword": True}})])
        facts = await facts_of(scheduler_world)
        assert ("DRAIN" in facts.states, facts.reason == removed.reason) == (is_drained, is_drained)

    async def test_a_running_job_is_told_with_its_owner(self, scheduler_world: SchedulerWorld) -> None:
        job_id = await scheduler_world.start_job(scheduler_world.node, opted=True)
        job = await job_of(scheduler_world, job_id)
        assert job is not None
        assert (job.state, scheduler_world.node in job.nodes, bool(job.user)) == ("RUNNING", True, True)

    async def test_draining_is_not_drained(self, scheduler_world: SchedulerWorld) -> None:
        await scheduler_world.start_job(scheduler_world.node, opted=False)
        await quarantine(scheduler_world)
        facts = await facts_of(scheduler_world)
        assert (facts.ownership, facts.busy) == (Ownership.OURS, True)

    async def test_only_jobs_that_opted_in_are_interrupted(self, scheduler_world: SchedulerWorld) -> None:
        willing = await scheduler_world.start_job(scheduler_world.node, opted=True)
        await scheduler_world.start_job(scheduler_world.node, opted=False)
        jobs = await scheduler_world.scheduler.workloads([scheduler_world.node])
        acts = scheduler_world.scheduler.interrupt_acts(CLUSTER, scheduler_world.node, MARK, jobs)
        assert [(act.target, act.baseline) for act in acts] == [(willing, {"restarts": 0})]

    async def test_a_requeue_takes_the_job_off_and_leaves_the_others(self, scheduler_world: SchedulerWorld) -> None:
        willing = await scheduler_world.start_job(scheduler_world.node, opted=True)
        unwilling = await scheduler_world.start_job(scheduler_world.node, opted=False)
        await quarantine(scheduler_world)
        await carry_out(scheduler_world, [await requeue_act(scheduler_world, willing)])
        await until_gone(scheduler_world, willing)
        other = await job_of(scheduler_world, unwilling)
        assert other is not None
        assert (other.state, other.restarts) == ("RUNNING", 0)

    async def test_a_requeue_is_proven_and_not_written_twice(self, scheduler_world: SchedulerWorld) -> None:
        job_id = await scheduler_world.start_job(scheduler_world.node, opted=True)
        act = await requeue_act(scheduler_world, job_id)
        before = await scheduler_world.scheduler.look(act)
        await carry_out(scheduler_world, [act])
        await until_gone(scheduler_world, job_id)
        after = await scheduler_world.scheduler.look(act)
        assert (before.outcome, after.outcome) == (Outcome.NOT_DONE, Outcome.DONE)
        assert isinstance(await scheduler_world.scheduler.prepare(act), AlreadyDone)

    async def test_a_requeue_of_a_job_that_did_not_opt_in_is_refused(self, scheduler_world: SchedulerWorld) -> None:
        unwilling = await scheduler_world.start_job(scheduler_world.node, opted=False)
        job = await job_of(scheduler_world, unwilling)
        assert job is not None
        pretending = job.model_copy(update={"opted_into_requeue": True})
        acts = scheduler_world.scheduler.interrupt_acts(CLUSTER, scheduler_world.node, MARK, [pretending])
        assert await carry_out(scheduler_world, acts) == [NotOurs]

    async def test_an_unknown_node_is_not_an_empty_one(self, scheduler_world: SchedulerWorld) -> None:
        with pytest.raises(NotFound, match="no-such-node"):
            await scheduler_world.scheduler.node("no-such-node")
        with pytest.raises(NotFound, match="no-such-node"):
            await scheduler_world.scheduler.workloads(["no-such-node"])
