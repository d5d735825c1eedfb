"""The cluster that the lab declares: its nodes, and the default policy in the lab's own time."""

from __future__ import annotations

import pytest

from daytwo.domain.load_definition import load_definitions
from daytwo.domain.policy import Policy
from daytwo.lab.definition import as_yaml, lab_definition, lab_policy, node_names


@pytest.mark.parametrize(("count", "last"), [(1, "node-01"), (16, "node-16"), (128, "node-128")])
def test_nodes_are_named_with_one_width(count: int, last: str) -> None:
    names = node_names(count)
    assert (len(names), names[-1], len({len(name) for name in names})) == (count, last, 1)


def test_every_node_is_in_one_rack_of_four() -> None:
    groups = lab_definition("/run/lab.sock", nodes=10).groups
    assert [len(group.nodes) for group in groups] == [4, 4, 2]
    assert [group.domains for group in groups] == [("rack-1",), ("rack-2",), ("rack-3",)]


def test_what_a_person_would_write_loads_as_the_same_cluster() -> None:
    definition = lab_definition("/run/lab.sock")
    assert load_definitions(as_yaml(definition), "sim.yaml") == definition


def test_a_fast_lab_waits_less_for_machines_and_tests() -> None:
    usual, fast = Policy(), lab_policy(60)
    assert fast.timing.boot_seconds == usual.timing.boot_seconds / 60
    assert fast.verify.quiet_seconds == usual.verify.quiet_seconds / 60


def test_a_fast_lab_waits_as_long_as_ever_for_people_and_agents() -> None:
    usual, fast = Policy(), lab_policy(60)
    assert fast.approval == usual.approval
    assert fast.timing.settle_seconds == usual.timing.settle_seconds
    assert fast.timing.silent_after_seconds == usual.timing.silent_after_seconds


def test_a_node_is_silent_after_three_pulses() -> None:
    assert lab_policy(60, pulse_seconds=5).timing.silent_after_seconds == 15
