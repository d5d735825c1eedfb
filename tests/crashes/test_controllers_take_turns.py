"""Two controllers at once, and what is left when the one that leads dies."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from sqlmodel import select

from daytwo.domain.vocabulary import DecisionKind
from daytwo.store.tables import RepairRow
from tests.crashes.living import LivingPlane
from workflows.names import workflow_id


class Opened(NamedTuple):
    """What has come of one fault."""

    repairs: int
    workflows: int
    reserved: int
    drained: int


ONCE = Opened(1, 1, 1, 1)


async def opened(plane: LivingPlane, node: str) -> Opened:
    with plane.store.read() as session:
        repairs = session.exec(select(RepairRow).where(RepairRow.node == node)).all()
    runs = [run async for run in plane.client.list_workflows(f"WorkflowId = '{workflow_id('sim', node)}'")]
    return Opened(len(repairs), len(runs), plane.acts(node, "reserve"), plane.acts(node, "drain"))


async def test_one_fault_under_two_controllers_is_one_repair(plane: LivingPlane) -> None:
    node = await plane.faulty()
    assert await opened(plane, node) == ONCE, plane.story(node)


async def test_a_repair_begun_by_a_controller_that_died_is_opened_once(plane: LivingPlane) -> None:
    node, leader = plane.quiet(), plane.leader()
    await plane.broken(node=node)
    await plane.the_moment(lambda: plane.state(node) == "opening", leader.kill)
    await plane.proposed(node)
    leader.start()
    await plane.until(lambda: plane.acts(node, "drain"), "contained")
    assert await opened(plane, node) == ONCE, plane.story(node)


async def test_a_decision_written_while_nobody_leads_is_delivered_by_the_next_leader(plane: LivingPlane) -> None:
    node, leader = await plane.faulty(), plane.leader()
    leader.kill()
    row = await plane.ended(await plane.written(node, DecisionKind.APPROVE))
    next_leader = plane.leader()
    leader.start()
    assert (row.status, next_leader is leader) == ("accepted", False), plane.story(node)


async def test_a_controller_that_wakes_up_after_its_lease_opens_nothing_twice(plane: LivingPlane) -> None:
    node, leader = plane.quiet(), plane.leader()
    with plane.locked_store():  # so that it is not stopped while it holds the store
        leader.pause()
    await plane.broken(node=node)
    await plane.proposed(node)
    leader.go_on()
    await asyncio.sleep(2.0)
    assert await opened(plane, node) == ONCE, plane.story(node)
