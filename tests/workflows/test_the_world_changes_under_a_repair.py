"""Other hands, faults that come back, nodes that do not: the repair asks, and never undoes another's act."""

from __future__ import annotations

import asyncio

from daytwo.domain.vocabulary import DecisionKind, Moment, State
from tests.workflows.plane import Plane

D = DecisionKind
S = State


async def test_a_node_that_a_person_has_drained_is_left_to_them(plane: Plane) -> None:
    node = await plane.broken("person-drain")
    await plane.until(lambda: plane.node(node).state == "paused", "the drain is seen")
    await plane.broken("xid-79", node=node)
    await plane.until(lambda: "xid-79" in plane.findings(node), "the fault is known")
    await asyncio.sleep(1.5)
    assert plane.repair(node) is None
    assert plane.acts(node, "drain") == 0


async def test_a_drain_that_a_person_lifts_in_the_middle_stops_the_repair(plane: Plane) -> None:
    node = await plane.busy()
    await plane.broken("xid-154", node=node)
    await plane.approved(node, moment=Moment.WHEN_IDLE)
    await plane.in_state(node, S.WAITING)
    await asyncio.to_thread(plane.by_hand, node, "undrain")
    repair = await plane.in_state(node, S.NEEDS_HELP, seconds=40)
    assert "our marks are not what we wrote" in repair.attention
    assert plane.acts(node, "reboot") == 0


async def test_a_node_that_somebody_else_boots_is_tested_and_not_booted_again(plane: Plane) -> None:
    node = await plane.busy()
    await plane.broken("xid-154", node=node)
    await plane.approved(node, moment=Moment.WHEN_IDLE)
    await plane.in_state(node, S.WAITING)
    await asyncio.to_thread(plane.by_hand, node, "power-cycle")
    await plane.in_state(node, S.SUCCEEDED, seconds=60)
    assert "booted-by-another" in plane.events(node)
    assert (plane.acts(node, "reboot"), plane.acts(node, "power-cycle")) == (0, 0)


async def test_a_proposal_tells_of_the_jobs_that_are_there_now_under_its_revision(plane: Plane) -> None:
    node = await plane.broken("xid-79")
    await plane.proposed(node)
    await plane.until(lambda: not plane.proposal(node).workloads, "the jobs have gone from the proposal", 100)
    proposal = plane.proposal(node)
    assert (proposal.revision, proposal.contain) == (1, True)


async def test_a_fault_that_clears_by_reading_takes_its_proposal_with_it(plane: Plane) -> None:
    node = await plane.broken("slurm-drained")
    await plane.proposed(node)
    await asyncio.to_thread(plane.lab.heal_node, node)
    await plane.in_state(node, S.AUTO_RESOLVED)
    assert not {"DRAIN"} & plane.scheduler_states(node)


async def test_a_fault_that_is_not_cured_by_the_reboot_is_proposed_with_the_next_rung(plane: Plane) -> None:
    node = await plane.broken("xid-79", cured_by="never")
    first = await plane.proposed(node)
    await plane.decide(node, D.APPROVE)
    await plane.until(lambda: "still-faulty" in plane.events(node), "still faulty", 60)
    again = await plane.proposed(node, revision=2)
    assert (first.action, again.action != first.action) == ("reboot", True), plane.story(node)
    assert plane.proposal(node).reason.startswith("Reboot did not help: ")
    assert "DRAIN" in plane.scheduler_states(node)


async def test_a_node_that_never_comes_back_asks_for_help(plane: Plane) -> None:
    node = await plane.broken("xid-119", never_comes_back=True)
    await plane.approved(node)
    repair = await plane.in_state(node, S.NEEDS_HELP, seconds=60)
    assert "not proven" in repair.attention
    assert plane.acts(node, "reboot") == 1


async def test_a_node_that_comes_back_without_a_gpu_does_not_return(plane: Plane) -> None:
    node = await plane.broken("xid-119", comes_back_without_gpu=True)
    await plane.approved(node)
    await plane.in_state(node, S.PROPOSED, S.NEEDS_HELP, seconds=60)
    await plane.until(lambda: {"still-faulty", "stuck"} & set(plane.events(node)), "the tests failed", 60)
    assert "DRAIN" in plane.scheduler_states(node)


async def test_a_node_whose_agent_is_dead_all_the_way_is_repaired_but_does_not_return_by_itself(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    await plane.broken("agent-silent", node=node)
    await plane.approved(node)
    repair = await plane.in_state(node, S.NEEDS_HELP, seconds=60)
    assert plane.acts(node, "reboot") == 1
    assert "unknown" in repair.attention
    assert "DRAIN" in plane.scheduler_states(node)


async def test_a_fault_that_returns_after_the_repair_is_a_relapse(plane: Plane) -> None:
    node = await plane.broken("xid-79", returns_after=6000)
    await plane.approved(node)
    first = await plane.in_state(node, S.SUCCEEDED, seconds=60)
    await plane.until(lambda: plane.repair(node).id != first.id, "a second repair", 60)
    second = await plane.proposed(node)
    assert (first.action, second.action) == ("reboot", "power-cycle")


async def test_a_dismissal_is_honoured_until_work_was_interrupted(plane: Plane) -> None:
    node = await plane.busy()
    await plane.broken("xid-154", node=node)
    await plane.approved(node, moment=Moment.WHEN_IDLE)
    await plane.in_state(node, S.WAITING)
    await plane.decide(node, D.DISMISS)
    await plane.in_state(node, S.DISMISSED)
    assert "DRAIN" not in plane.scheduler_states(node)


async def test_a_repair_that_needs_help_returns_after_tests(plane: Plane) -> None:
    node = await plane.broken("xid-119", never_comes_back=True)
    await plane.approved(node)
    await plane.in_state(node, S.NEEDS_HELP, seconds=60)
    await asyncio.to_thread(plane.lab.heal_node, node)
    await plane.until(lambda: "NOT_RESPONDING" not in plane.scheduler_states(node), "somebody fixed it")
    await plane.ended(await plane.decide(node, D.RETURN_AFTER_TESTS))
    await plane.in_state(node, S.SUCCEEDED, seconds=60)


async def test_a_terminated_workflow_comes_back_as_one_that_needs_help(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    first = await plane.proposed(node)
    await plane.client.get_workflow_handle(f"repair:sim:{node}").terminate("a test")
    repair = await plane.in_state(node, S.NEEDS_HELP)
    assert (repair.id, "ended from outside" in repair.attention) == (first.id, True)
    await plane.ended(await plane.decide(node, D.RETRY, reason="go on"))
    await plane.in_state(node, S.SUCCEEDED, seconds=60)


async def test_temporals_own_cancel_takes_a_proposal_back(plane: Plane) -> None:
    node = await plane.broken("xid-79")
    await plane.proposed(node)
    await plane.client.get_workflow_handle(f"repair:sim:{node}").cancel()
    await plane.in_state(node, S.DISMISSED)
    assert "DRAIN" not in plane.scheduler_states(node)
