"""What an injected fault leaves behind: in the kernel log, on the GPU, with the jobs, in the scheduler."""

from __future__ import annotations

import pytest

from daytwo.domain.errors import BadInput, NotFound
from daytwo.faults import signals
from daytwo.faults.kernel_line import parse_line
from daytwo.faults.off_bus import OffBus
from daytwo.lab.acts import Acts, Order
from daytwo.lab.faults import SCRIPTS, Break
from daytwo.lab.views import scheduler_node, states
from daytwo.lab.world import Node

from .conftest import World

NODE = "node-09"
KERNEL_FAULTS = sorted(fault for fault, script in SCRIPTS.items() if script.lines or script.recovery)


def seen_in_kernel(node: Node) -> list[tuple[str, str | None]]:
    """Read the kernel log of a node as the agent does."""
    off_bus = OffBus()
    records = [parse_line(line.kmsg) for line in node.kernel]
    found = [signals.read(record, off_bus) for record in records if record is not None]
    return [(signal.fault, signal.entity_pci) for signal in found if signal is not None]


@pytest.mark.parametrize("fault", KERNEL_FAULTS)
def test_a_kernel_fault_is_read_back_by_the_agent_s_own_parser(world: World, fault: str) -> None:
    world.fleet.break_node(NODE, Break(fault=fault, gpu=5))
    node = world.after(1).node(NODE)
    assert (fault, node.gpus[5].pci) in seen_in_kernel(node)


def test_xid_154_follows_its_cause(world: World) -> None:
    world.fleet.break_node(NODE, Break(fault="xid-79"))
    at_once = [fault for fault, _ in seen_in_kernel(world.fleet.node(NODE))]
    later = [fault for fault, _ in seen_in_kernel(world.after(0.5).node(NODE))]
    assert (at_once, later) == (["xid-79"], ["xid-79", "xid-154"])


def test_kernel_lines_are_numbered_and_timed_from_the_boot(world: World) -> None:
    node = world.fleet.node(NODE)
    world.fleet.break_node(NODE, Break(fault="xid-119"))
    since_boot = (world.wall.now - node.boot_time).total_seconds() * 1_000_000
    assert [line.sequence for line in node.kernel] == [1, 2, 3]
    assert node.kernel[0].monotonic_us == since_boot


@pytest.mark.parametrize(
    ("fault", "reading"),
    [
        ("xid-79", "lost"),
        ("gpu-off-bus", "lost"),
        ("xid-63", "remap_pending"),
        ("xid-64", "remap_failed"),
        ("thermal-throttle", "hw_slowdown"),
    ],
)
def test_a_fault_shows_in_the_readings_of_its_gpu_alone(world: World, fault: str, reading: str) -> None:
    world.fleet.break_node(NODE, Break(fault=fault, gpu=2))
    assert [getattr(gpu, reading) for gpu in world.fleet.node(NODE).gpus].index(True) == 2
    assert sum(getattr(gpu, reading) for gpu in world.fleet.node(NODE).gpus) == 1


def test_a_hung_job_still_runs_for_its_scheduler_until_its_watchdog_fires(world: World) -> None:
    (job,) = world.fleet.queue.on("node-01")
    world.fleet.break_node("node-01", Break(fault="xid-79"))
    world.after(1700)
    running = job.state
    world.after(120)
    assert (running, job.state) == ("RUNNING", "FAILED")


def test_a_fault_that_kills_its_job_frees_all_nodes_of_it(world: World) -> None:
    world.fleet.break_node("node-01", Break(fault="xid-79", job_dies=True))
    world.after(15)
    assert not any(world.fleet.queue.on(f"node-0{number}") for number in range(1, 9))


@pytest.mark.parametrize(("fault", "by"), [("slurm-drained", "slurm"), ("person-drain", "alice")])
def test_a_drain_is_set_by_who_it_says(world: World, fault: str, by: str) -> None:
    world.fleet.break_node(NODE, Break(fault=fault))
    seen = scheduler_node(world.fleet, world.fleet.node(NODE))
    assert "DRAIN" in seen["states"]
    assert (seen["reason_by"], bool(seen["reason"])) == (by, True)


def test_healing_ends_the_drain_and_the_readings(world: World) -> None:
    for fault in ("person-drain", "thermal-throttle", "agent-silent"):
        world.fleet.break_node("node-16", Break(fault=fault))
    world.fleet.heal_node("node-16")
    node = world.fleet.node("node-16")
    assert (states(world.fleet, node), node.faults, node.agent_silent) == (["IDLE"], [], False)
    assert not any(gpu.hw_slowdown for gpu in node.gpus)


def test_healing_leaves_our_own_drain_alone(world: World) -> None:
    world.fleet.break_node("node-16", Break(fault="slurm-drained"))
    Acts(world.fleet).do(Order.model_validate({"kind": "drain", "node": "node-16", "reason": "daytwo r-1: x"}))
    world.fleet.heal_node("node-16")
    assert states(world.fleet, world.fleet.node("node-16")) == ["IDLE", "DRAIN"]


@pytest.mark.parametrize(
    ("node", "fault", "gpu", "error"),
    [
        ("node-99", "xid-79", 0, NotFound),
        (NODE, "xid-7", 0, BadInput),
        (NODE, "xid-79", 8, BadInput),
    ],
)
def test_what_is_not_there_cannot_be_broken(
    world: World, node: str, fault: str, gpu: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match="found"):
        world.fleet.break_node(node, Break(fault=fault, gpu=gpu))
