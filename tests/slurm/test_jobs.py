"""Jobs on a real Slurm: what is told of them, and requeues that come too late."""

from __future__ import annotations

from pathlib import Path

import pytest

from daytwo.domain.definition import SlurmAccess
from daytwo.domain.errors import UnknownAnswer
from daytwo.domain.seams import AlreadyDone
from daytwo.domain.vocabulary import Workload
from daytwo.schedulers.slurm import SlurmScheduler
from tests.contracts.scheduler import CLUSTER, carry_out, requeue_act, until_gone
from tests.slurm.conftest import NODES, Hands


async def only_job(hands: Hands) -> Workload:
    (job,) = await hands.scheduler.workloads([hands.node])
    return job


async def test_a_job_is_told_with_all_of_its_nodes_and_gpus(hands: Hands) -> None:
    other = next(node for node in NODES if node != hands.node)
    job_id = hands.submit(f"{hands.node},{other}", "-N2", "--job-name=llama", "--time=90")
    await hands.until(lambda: hands.job_state(job_id) == "RUNNING")
    job = await only_job(hands)
    assert (job.nodes, job.gpus, job.name) == (tuple(sorted((hands.node, other))), 4, "llama")
    assert (job.user, job.partition, job.time_limit_seconds) == ("root", "main", 5400)
    assert job.elapsed_seconds is not None
    assert 0 <= job.elapsed_seconds < 60


async def test_a_job_name_cannot_pretend_to_opt_in(hands: Hands) -> None:
    job_id = hands.submit(hands.node, "--job-name=x Comment=daytwo-requeue Requeue=1")
    await hands.until(lambda: hands.job_state(job_id) == "RUNNING")
    assert not (await only_job(hands)).opted_into_requeue


async def test_a_job_that_forbids_a_requeue_is_left_alone_even_if_it_opted_in(hands: Hands) -> None:
    job_id = hands.submit(hands.node, "--comment=daytwo-requeue", "--no-requeue")
    await hands.until(lambda: hands.job_state(job_id) == "RUNNING")
    job = await only_job(hands)
    assert (job.opted_into_requeue, job.may_requeue) == (True, False)


async def test_tasks_of_an_array_are_told_apart_and_requeued_one_by_one(hands: Hands) -> None:
    job_id = hands.submit(hands.node, "--array=3-4", "--comment=daytwo-requeue")
    await hands.until(lambda: hands.job_state(job_id).split() == ["RUNNING", "RUNNING"])
    await carry_out(hands, [await requeue_act(hands, f"{job_id}_3")])
    await until_gone(hands, f"{job_id}_3")
    assert (await only_job(hands)).id == f"{job_id}_4"


async def test_a_part_of_a_heterogeneous_job_is_shown_and_never_requeued_alone(hands: Hands) -> None:
    other = next(node for node in NODES if node != hands.node)
    common = ("--comment=daytwo-requeue", "-D", "/", "-o", "/dev/null")
    parts = (*common, "-w", hands.node, "--wrap", "sleep 600", ":", *common, "-w", other)
    job_id = hands.lab.run("sbatch", "--parsable", *parts).strip()
    await hands.until(lambda: hands.job_state(job_id).split() == ["RUNNING", "RUNNING"])
    jobs = await hands.scheduler.workloads([hands.node, other])
    assert {job.id: job.opted_into_requeue for job in jobs} == {f"{job_id}+0": False, f"{job_id}+1": False}


async def test_a_suspended_job_still_holds_the_node(hands: Hands) -> None:
    job_id = await hands.start_job(hands.node, opted=True)
    hands.lab.run("scontrol", "suspend", job_id)
    assert (await only_job(hands)).state == "SUSPENDED"


async def test_a_late_requeue_does_not_touch_the_job_that_restarted_elsewhere(hands: Hands) -> None:
    other = next(node for node in NODES if node != hands.node)
    job_id = await hands.start_job(hands.node, opted=True)
    late = await requeue_act(hands, job_id)
    hands.lab.run("scontrol", "requeue", job_id)
    await hands.until(lambda: hands.job_state(job_id) == "PENDING")
    # Left to itself it waits for two minutes: the node it left would refuse its old credential.
    hands.lab.run("scontrol", "update", f"JobId={job_id}", f"ReqNodeList={other}", "StartTime=now")
    await hands.until(lambda: hands.job_state(job_id) == "RUNNING")
    assert await carry_out(hands, [late]) == [AlreadyDone]
    (restarted,) = await hands.scheduler.workloads([other])
    assert (restarted.id, restarted.state, restarted.restarts) == (job_id, "RUNNING", 1)


async def test_a_late_requeue_does_not_run_an_ended_job_once_more(hands: Hands) -> None:
    job_id = await hands.start_job(hands.node, opted=True)
    late = await requeue_act(hands, job_id)
    hands.lab.run("scancel", job_id)
    await until_gone(hands, job_id)
    assert await carry_out(hands, [late]) == [AlreadyDone]
    assert hands.job_state(job_id) == "CANCELLED"


async def test_jobs_that_slurm_hides_make_a_busy_node_unknown_not_empty(hands: Hands, tmp_path: Path) -> None:
    await hands.start_job(hands.node, opted=False)
    for program in ("scontrol", "sinfo"):
        (tmp_path / program).symlink_to(f"/usr/bin/{program}")
    (tmp_path / "squeue").write_text('#!/bin/sh\necho \'{"errors": [], "jobs": []}\'\n')
    (tmp_path / "squeue").chmod(0o755)
    blinkered = SlurmScheduler(SlurmAccess(bin=str(tmp_path), conf=str(hands.lab.conf)), CLUSTER)
    with pytest.raises(UnknownAnswer, match=f"{hands.node} is busy"):
        await blinkered.workloads([hands.node])
