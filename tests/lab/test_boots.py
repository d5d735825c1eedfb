"""What a boot does to a simulated node, its marks and its faults."""

from __future__ import annotations

import pytest

from daytwo.lab.acts import Acts, Order
from daytwo.lab.faults import Break
from daytwo.lab.views import scheduler_node, states
from daytwo.lab.world import Node

from .conftest import World

IDLE = "node-16"
BUSY = "node-01"
BOOTED = 700.0


@pytest.fixture
def acts(world: World) -> Acts:
    return Acts(world.fleet)


@pytest.fixture
def node(world: World) -> Node:
    return world.fleet.node(IDLE)


def order(acts: Acts, kind: str, node: str = IDLE, **fields: str) -> None:
    acts.do(Order.model_validate({"kind": kind, "node": node, **fields}))


def test_a_boot_changes_boot_id_and_boot_time_and_empties_the_kernel_log(world: World, acts: Acts, node: Node) -> None:
    world.fleet.break_node(IDLE, Break(fault="xid-79"))
    before = (node.boot_id, node.boot_time)
    order(acts, "reboot")
    world.after(BOOTED)
    assert node.boot_id != before[0]
    assert node.boot_time > before[1]
    assert not [line for line in node.kernel if "Xid" in line.text]


def test_a_reboot_goes_through_the_states_that_slurm_shows(world: World, acts: Acts, node: Node) -> None:
    order(acts, "reserve", reservation="daytwo-r-1")
    order(acts, "drain", reason="daytwo r-1: x")
    order(acts, "reboot")
    seen = [states(world.after(seconds), node) for seconds in (0, 60, 300, BOOTED)]
    assert seen == [
        ["IDLE", "DRAIN", "REBOOT_REQUESTED", "MAINTENANCE", "RESERVED"],
        ["DOWN", "DRAIN", "REBOOT_ISSUED", "NOT_RESPONDING", "MAINTENANCE", "RESERVED"],
        ["DOWN", "DRAIN", "REBOOT_ISSUED", "NOT_RESPONDING", "MAINTENANCE", "RESERVED"],
        ["IDLE", "MAINTENANCE", "RESERVED"],
    ]


def test_a_reboot_waits_until_the_node_is_idle(world: World, acts: Acts) -> None:
    order(acts, "reboot", BUSY)
    world.after(3600)
    node = world.fleet.node(BUSY)
    assert (node.up, states(world.fleet, node)) == (True, ["ALLOCATED", "DRAIN", "REBOOT_REQUESTED"])


def test_a_power_cycle_keeps_the_drain(world: World, acts: Acts, node: Node) -> None:
    order(acts, "drain", reason="daytwo r-1: x")
    order(acts, "power-cycle")
    world.after(BOOTED)
    assert states(world.fleet, node) == ["IDLE", "DRAIN"]


def test_a_power_cycle_kills_the_jobs_and_those_that_may_start_again_elsewhere(world: World, acts: Acts) -> None:
    (job,) = world.fleet.queue.on(BUSY)
    order(acts, "drain", BUSY, reason="daytwo r-1: x")
    order(acts, "power-cycle", BUSY)
    world.after(BOOTED)
    assert (job.state, job.restarts, BUSY in job.nodes) == ("RUNNING", 1, False)


@pytest.mark.parametrize(
    ("cured_by", "boot", "survives"),
    [
        ("reboot", "reboot", False),
        ("reboot", "power-cycle", False),
        ("power-cycle", "reboot", True),
        ("power-cycle", "power-cycle", False),
        ("never", "power-cycle", True),
    ],
)
def test_a_fault_survives_what_does_not_cure_it(
    world: World, acts: Acts, cured_by: str, boot: str, survives: bool
) -> None:
    world.fleet.break_node(IDLE, Break.model_validate({"fault": "xid-79", "cured_by": cured_by}))
    order(acts, boot)
    node = world.after(BOOTED).node(IDLE)
    assert any("): 79," in line.text for line in node.kernel) == survives
    assert node.gpus[3].lost == survives


def test_a_node_that_never_comes_back_times_out(world: World, acts: Acts, node: Node) -> None:
    world.fleet.break_node(IDLE, Break(fault="xid-79", never_comes_back=True))
    order(acts, "drain", reason="daytwo r-1: x")
    order(acts, "reboot")
    world.after(7200)
    assert states(world.fleet, node) == ["DOWN", "DRAIN", "NOT_RESPONDING"]
    assert scheduler_node(world.fleet, node)["reason"] == "daytwo r-1: x : reboot issued : reboot timed out"


def test_a_node_that_comes_back_without_a_gpu_is_drained_by_its_scheduler(world: World, acts: Acts, node: Node) -> None:
    world.fleet.break_node(IDLE, Break(fault="xid-79", comes_back_without_gpu=True))
    order(acts, "reboot")
    world.after(BOOTED)
    seen = scheduler_node(world.fleet, node)
    assert (seen["gpus"], seen["gpus_configured"], seen["reason_by"]) == (7, 8, "slurm")
    assert seen["reason"] == "gres/gpu count reported lower than configured (7 < 8)"


def test_a_fault_that_returns_does_so_after_its_cure(world: World, acts: Acts, node: Node) -> None:
    world.fleet.break_node(IDLE, Break(fault="xid-79", returns_after=3600))
    order(acts, "reboot")
    world.after(BOOTED)
    cured = not node.faults
    world.after(3600)
    assert cured
    assert [fault.how.fault for fault in node.faults] == ["xid-79"]


def test_a_healed_node_that_hung_in_its_boot_comes_up(world: World, acts: Acts, node: Node) -> None:
    world.fleet.break_node(IDLE, Break(fault="xid-79", never_comes_back=True))
    order(acts, "reboot")
    world.after(7200)
    world.fleet.heal_node(IDLE)
    world.after(BOOTED)
    assert states(world.fleet, node) == ["IDLE"]


def test_a_node_without_power_stays_off_until_somebody_gives_it_back(world: World, acts: Acts, node: Node) -> None:
    order(acts, "power-off")
    world.after(7200)
    off = states(world.fleet, node)
    order(acts, "power-on")
    world.after(BOOTED)
    assert (off, states(world.fleet, node)) == (["DOWN", "NOT_RESPONDING"], ["IDLE"])
