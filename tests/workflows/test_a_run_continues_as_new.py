"""A repair outlives its runs: what it has seen, what stands and where it is go from one to the next."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError

from daytwo.domain.vocabulary import DecisionKind, State
from daytwo.store.tables import RepairRow
from tests.workflows.plane import NOBODY, Plane
from tests.workflows.short_runs import a_repair_of_short_runs
from workflows import names

D = DecisionKind
S = State


def handle_of(plane: Plane, repair: RepairRow) -> WorkflowHandle[Any, Any]:
    return plane.client.get_workflow_handle(names.workflow_id("sim", repair.node))


async def run_of(plane: Plane, repair: RepairRow) -> dict[str, Any]:
    found: dict[str, Any] = await handle_of(plane, repair).query(names.STATE_QUERY)
    return found


async def announced(plane: Plane, repair: RepairRow) -> dict[str, Any]:
    for _ in range(100):
        if (run := await run_of(plane, repair))["announced_revision"]:
            return run
        await asyncio.sleep(0.05)
    raise AssertionError("it was never announced")


async def next_run(plane: Plane, repair: RepairRow) -> dict[str, Any]:
    """Say things that nobody can follow until the run is full; returns the state of the run after it."""
    before = (await run_of(plane, repair))["runs"]
    for _ in range(100):
        await handle_of(plane, repair).signal("approve", "garbage")
        now = await run_of(plane, repair)
        if now["runs"] > before:
            return now
    raise AssertionError("the run never became full")


async def test_a_repair_runs_to_its_end_over_several_runs(plane: Plane) -> None:
    repair = await a_repair_of_short_runs(plane, "xid-119", events_per_run=40)
    await plane.ended(await plane.decide(repair.node, D.APPROVE))
    await plane.in_state(repair.node, S.SUCCEEDED, seconds=60)
    result = await handle_of(plane, repair).result()
    assert (result["runs"] > 2, result["stamps"].keys() >= {"detected", "approved", "returned"}) == (True, True)
    assert plane.acts(repair.node, "reboot") == 1


async def test_the_next_run_stands_where_the_last_one_stood(plane: Plane) -> None:
    repair = await a_repair_of_short_runs(plane, "xid-119", events_per_run=60)
    before = await announced(plane, repair)
    after = await next_run(plane, repair)
    assert what_lasts(after) == what_lasts(before)


def what_lasts(run: dict[str, Any]) -> dict[str, Any]:
    """All but the number of the run, the last thing said, and what a fresh look tells of the jobs."""
    return {name: value for name, value in run.items() if name not in ("runs", "note", "proposal")} | {
        "asked": (run["proposal"]["revision"], run["proposal"]["action"])
    }


async def test_the_next_run_does_not_take_a_decision_that_the_last_one_has_seen(plane: Plane) -> None:
    repair = await a_repair_of_short_runs(plane, "xid-119", events_per_run=60)
    seen = await plane.decide(repair.node, D.APPROVE, NOBODY)
    await plane.ended(seen)
    assert (await next_run(plane, repair))["seen"] == [seen]
    with pytest.raises(WorkflowUpdateFailedError):
        await handle_of(plane, repair).execute_update(names.DECIDE, seen, id=f"again-{uuid.uuid4()}")


async def test_three_hundred_signals_that_say_nothing_keep_nobody_from_approving(plane: Plane) -> None:
    repair = await a_repair_of_short_runs(plane, "xid-119", events_per_run=200)
    await asyncio.gather(*(handle_of(plane, repair).signal("approve", [n]) for n in range(300)))
    row = await plane.ended(await plane.decide(repair.node, D.APPROVE))
    assert ((await run_of(plane, repair))["runs"] > 1, row.status) == (True, "accepted")
    await plane.in_state(repair.node, S.SUCCEEDED, seconds=60)


async def test_claims_without_end_keep_nobody_from_approving(plane: Plane) -> None:
    repair = await a_repair_of_short_runs(plane, "xid-119", events_per_run=100)
    claim = {"repair": repair.id, "revision": repair.revision, "who": "root", "reason": "again"}
    flood = asyncio.create_task(claims_without_end(handle_of(plane, repair), claim))
    row = await plane.ended(await plane.decide(repair.node, D.HOLD))
    flood.cancel()
    await asyncio.gather(flood, return_exceptions=True)
    assert (row.status, (await plane.in_state(repair.node, S.HELD)).id) == ("accepted", repair.id)


async def claims_without_end(handle: WorkflowHandle[Any, Any], claim: dict[str, Any]) -> None:
    while True:
        await asyncio.gather(*(handle.signal("approve", claim) for _ in range(20)))


async def test_temporals_own_cancel_is_heeded_by_a_run_that_is_full(plane: Plane) -> None:
    repair = await a_repair_of_short_runs(plane, "xid-79", events_per_run=60)
    handle = handle_of(plane, repair)
    await asyncio.gather(handle.cancel(), *(handle.signal("approve", [n]) for n in range(40)))
    await plane.in_state(repair.node, S.DISMISSED)
