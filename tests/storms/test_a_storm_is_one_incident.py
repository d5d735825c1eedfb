"""operations.md, rules 6, 9, 18, 22 and 24: many nodes that fall together are one incident, not many repairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storms.conftest import LEFT, NODES, Storm
from tests.storms.rig import Rig, a_rig

CONTAINED = NODES // 20
"""The budget's 5 % of the pool."""


def test_many_nodes_that_break_at_once_are_told_of_once(storm: Storm) -> None:
    assert [notice["urgent"] for notice in storm.during["notices"]] == [True]


@pytest.mark.parametrize(
    "says",
    [
        f"INCIDENT sim: {NODES} of {NODES} nodes with board faults since",
        f"probably ONE cause, not {NODES} nodes",
        f"Where: pool/h100 ({NODES}), rack-1 (4)",
        "no repair is opened for them, and nothing is drained, booted or requeued",
        "0 repairs were opened before it was seen",
        f"Contained: {CONTAINED} nodes take no new jobs, what runs goes on",
        "daytwo findings list --cluster sim",
    ],
)
def test_the_notice_says_where_how_many_what_was_not_done_and_where_to_look(storm: Storm, says: str) -> None:
    assert says in storm.during["notices"][0]["text"]


def test_no_repair_is_opened_for_a_node_of_many(storm: Storm) -> None:
    assert storm.during["started"] == []


def test_a_storm_is_contained_within_the_budget(storm: Storm) -> None:
    assert len(storm.during["marks"]) == CONTAINED


def test_containment_in_a_storm_carries_the_incidents_id(storm: Storm) -> None:
    (incident,) = storm.during["incidents"]
    assert all(reason.startswith(f"daytwo {incident.id}-") for reason in storm.during["marks"].values())


def test_the_end_of_a_storm_is_told_once(storm: Storm) -> None:
    subjects = [notice["subject"] for notice in storm.after["notices"]]
    assert [subject.split(" sim:")[0] for subject in subjects] == ["INCIDENT", "INCIDENT OVER"]


def test_after_a_storm_the_present_is_judged_and_nothing_is_replayed(storm: Storm) -> None:
    assert set(storm.after["started"]) == set(LEFT)


def test_after_a_storm_no_mark_is_left_without_an_open_repair(storm: Storm) -> None:
    repairs = storm.rig.repair_ids()
    assert {node: reason.split(":")[0] for node, reason in storm.after["marks"].items()} == {
        node: f"daytwo {repairs[node]}" for node in LEFT
    }


def test_nothing_but_containment_was_ever_ordered(storm: Storm) -> None:
    kinds = {entry.order.kind for entry in storm.rig.lab.acts.log}
    assert kinds == {"reserve", "drain", "undrain", "unreserve"}


async def test_before_the_breaker_sees_a_storm_only_so_many_repairs_are_opened_as_it_lets_pass(
    migrated_file: Path,
) -> None:
    uncontained = {"contain_unasked": False}
    async with a_rig(migrated_file, nodes=80, policy=uncontained) as rig:
        for name in (*rig.names[::4], *rig.names[1::4]):  # rack after rack, so that no rack has three
            rig.broken([name])
            await rig.reconciler.step()
        assert len(rig.temporal.nodes) == 5  # the breaker's pool_nodes; the sixth shows that it is one cause


async def test_a_controller_that_takes_over_tells_nobody_again(rig: Rig) -> None:
    rig.broken(rig.names)
    await rig.steps(0.5, 2)
    rig.reconciler = rig.controller()
    await rig.steps(1, 2)
    assert len(rig.notices()) == 1


async def test_an_incident_is_told_again_only_when_it_has_reached_others(rig: Rig) -> None:
    rig.broken(rig.names[:4])
    await rig.steps(0.5, 2)
    rig.broken(rig.names[4:8])
    await rig.steps(1, 2, 700)
    assert ["rack-2" in notice["text"] for notice in rig.notices()] == [False, True]


async def test_what_the_policy_only_records_is_no_incident(rig: Rig) -> None:
    rig.broken(rig.names, "xid-45")
    await rig.steps(0.5, 2, 5)
    assert rig.incidents() == []
    assert rig.notices() == []


async def test_a_channel_that_fails_is_tried_again(rig: Rig) -> None:
    (rig.root / "notices.jsonl").mkdir()
    rig.broken(rig.names)
    await rig.steps(0.5, 2)
    (rig.root / "notices.jsonl").rmdir()
    await rig.steps(2, 2)
    assert len(rig.notices()) == 1
