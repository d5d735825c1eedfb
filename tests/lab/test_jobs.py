"""The simulated scheduler's own work: placing, requeueing and ending jobs, and its traps."""

from __future__ import annotations

import pytest

from daytwo.domain.errors import NotFound, Refused
from daytwo.lab.acts import Acts, Order
from daytwo.lab.jobs import KINDS
from daytwo.lab.views import states

from .conftest import World

IDLE, BUSY = "node-16", "node-01"


@pytest.fixture
def acts(world: World) -> Acts:
    return Acts(world.fleet)


def order(acts: Acts, kind: str, node: str = IDLE, **fields: str) -> str:
    return acts.do(Order.model_validate({"kind": kind, "node": node, **fields})).result


def test_a_fleet_begins_with_one_job_over_eight_nodes_and_some_idle_ones(world: World) -> None:
    widths = [job.width for job in world.fleet.queue.jobs.values()]
    idle = [name for name in world.fleet.nodes if not world.fleet.queue.on(name)]
    assert (widths.count(8), len(widths), idle) == (1, 7, ["node-15", "node-16"])


def test_some_jobs_opted_into_a_requeue_and_some_did_not(world: World) -> None:
    singles = [job for job in world.fleet.queue.jobs.values() if job.width == 1]
    assert {"", "daytwo-requeue"} == {job.comment for job in singles}
    assert {True, False} == {job.may_requeue for job in singles}


def test_a_requeued_job_starts_again_elsewhere_under_its_old_id(world: World, acts: Acts) -> None:
    (job,) = world.fleet.queue.on(BUSY)
    order(acts, "drain", BUSY, reason="daytwo r-1: x")
    order(acts, "requeue", BUSY, target=job.id)
    world.after(300)
    assert (job.state, job.restarts, len(job.nodes), BUSY in job.nodes) == ("RUNNING", 1, 8, False)


def test_a_late_requeue_kills_the_run_that_started_elsewhere(world: World, acts: Acts) -> None:
    (job,) = world.fleet.queue.on(BUSY)
    order(acts, "requeue", BUSY, target=job.id)
    world.after(300)
    order(acts, "requeue", BUSY, target=job.id)
    world.after(15)
    assert (job.state, job.restarts) == ("PENDING", 2)


@pytest.mark.parametrize(("target", "error"), [("99", NotFound), ("88217", Refused)])
def test_a_job_that_is_gone_or_may_not_is_not_requeued(
    world: World, acts: Acts, target: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        order(acts, "requeue", BUSY, target=target)
    assert acts.log[-1].result == "refused"


def test_new_work_lands_on_open_nodes_only(world: World, acts: Acts) -> None:
    order(acts, "drain", "node-15", reason="daytwo r-1: x")
    order(acts, "reserve", "node-16", reservation="daytwo-r-2")
    for _ in range(20):
        world.fleet.queue.submit(KINDS[0])
    world.after(24 * 3600)
    assert not world.fleet.queue.on("node-15")
    assert not world.fleet.queue.on("node-16")


def test_a_draining_node_is_drained_only_when_its_job_has_left(world: World, acts: Acts) -> None:
    node = world.fleet.node("node-09")
    (job,) = world.fleet.queue.on("node-09")
    order(acts, "drain", "node-09", reason="daytwo r-1: x")
    order(acts, "requeue", "node-09", target=job.id)
    completing = states(world.fleet, node)
    world.after(15)
    assert completing == ["ALLOCATED", "DRAIN", "COMPLETING"]
    assert states(world.fleet, node) == ["IDLE", "DRAIN"]


def test_new_jobs_keep_coming_and_spare_nodes_stay(world: World) -> None:
    seen = set()
    for _ in range(48):
        world.after(3600)
        seen |= set(world.fleet.queue.jobs)
    assert len(seen) > 20


def test_a_second_drain_overwrites_the_reason_of_a_person_without_an_error(world: World, acts: Acts) -> None:
    order(acts, "drain", reason="alice: PSU", by="alice")
    assert order(acts, "drain", reason="daytwo r-1: x") == "done"
    assert world.fleet.node(IDLE).drain.reason == "daytwo r-1: x"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("drain", {}),
        ("reserve", {}),
        ("unreserve", {"reservation": "daytwo-r-9"}),
        ("reset-gpu", {}),
    ],
)
def test_what_slurm_refuses_is_refused_and_logged(acts: Acts, kind: str, fields: dict[str, str]) -> None:
    with pytest.raises(Refused):
        order(acts, kind, **fields)
    assert [(entry.order.kind, entry.result) for entry in acts.log] == [(kind, "refused")]


def test_the_same_seed_gives_the_same_fleet() -> None:
    one, other = World(), World()
    for world in (one, other):
        world.after(6 * 3600)
    assert [(job.id, job.nodes) for job in one.fleet.queue.jobs.values()] == [
        (job.id, job.nodes) for job in other.fleet.queue.jobs.values()
    ]
    assert [node.boot_id for node in one.fleet.nodes.values()] == [node.boot_id for node in other.fleet.nodes.values()]


@pytest.mark.parametrize("nodes", [1, 2, 4, 64])
def test_a_fleet_may_be_of_any_size(nodes: int) -> None:
    world = World(nodes)
    world.after(3600)
    assert len(world.fleet.nodes) == nodes
