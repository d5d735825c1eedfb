"""What an incident has contained: given back when it is over, handed over to a repair, contained again."""

from __future__ import annotations

from tests.storms.rig import Rig

REPAIR = "r-20261130-030000-aaaaa"


async def _contained(rig: Rig) -> str:
    """Break everything; returns the one node of twelve that may be contained."""
    rig.broken(rig.names)
    await rig.steps(0.5, 2)
    (node,) = rig.marks()
    return node


async def test_a_node_that_is_well_stays_contained_until_its_incident_is_over(rig: Rig) -> None:
    node = await _contained(rig)
    rig.well([node])
    await rig.steps(1, 2)
    assert node in rig.marks()


async def test_an_open_repair_takes_the_mark_of_an_incident_over(rig: Rig) -> None:
    node = await _contained(rig)
    rig.open_repair(node, REPAIR)
    await rig.steps(0.5, 2)
    assert rig.marks()[node].startswith(f"daytwo {REPAIR}:")


async def test_marks_that_could_not_be_lifted_are_lifted_later(rig: Rig) -> None:
    node = await _contained(rig)
    rig.well(rig.names)
    rig.lab.fleet.node(node).power = "off"
    await rig.steps(1, 10)
    assert node in rig.marks()
    rig.lab.fleet.node(node).power = "on"
    await rig.steps(10, 61)
    assert (rig.marks(), rig.reservations()) == ({}, set())


async def test_the_next_storm_is_an_incident_of_its_own(rig: Rig) -> None:
    first = await _contained(rig)
    rig.well(rig.names)
    await rig.steps(1, 10, 10, 31)
    rig.broken(rig.names)
    await rig.steps(0.5, 2)
    assert len(rig.incidents()) == 2
    assert rig.marks()[first].startswith(f"daytwo {rig.incidents()[1].id}-")
