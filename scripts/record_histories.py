"""Records the histories that `tests/replay` replays: real repairs on a real Temporal, with a simulated fleet.

    .venv/bin/python -m scripts.record_histories              all of them, into tests/histories
    .venv/bin/python -m scripts.record_histories removed      only these

Record again only when a history of the old form can no longer stand in any installation: the old ones are what a change
is held against. A new way through the table is a new scenario, and its history is added to those that are there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import click
from temporalio.client import Client, WorkflowHandle, WorkflowHistory

from daytwo.domain.vocabulary import Action, DecisionKind, Moment, State
from daytwo.lab.definition import CLUSTER
from tests.workflows.plane import NOBODY, Plane, a_plane
from tests.workflows.short_runs import a_repair_of_short_runs
from tests.workflows.temporal import a_temporal
from workflows import names

D = DecisionKind
S = State

FOLDER: Final = Path(__file__).parents[1] / "tests/histories"
NODES: Final = 24
AT_ONCE: Final = 3
QUIET_SECONDS: Final = 1.0
LONG: Final = 90.0


async def succeeded(plane: Plane) -> str:
    """Approved, drained, rebooted, tested, returned."""
    node = await plane.broken("xid-119")
    await plane.approved(node)
    await plane.in_state(node, S.SUCCEEDED, seconds=LONG)
    return node


async def dismissed(plane: Plane) -> str:
    """Contained, then dismissed with a snooze."""
    node = await plane.broken("xid-79")
    await plane.proposed(node)
    await plane.decide(node, D.DISMISS, snooze_seconds=3600)
    await plane.in_state(node, S.DISMISSED)
    return node


async def needs_help(plane: Plane) -> str:
    """The node never comes back; the history ends while a person is waited for."""
    node = await plane.broken("xid-119", never_comes_back=True)
    await plane.approved(node)
    await plane.in_state(node, S.NEEDS_HELP, seconds=LONG)
    return node


async def returned_after_help(plane: Plane) -> str:
    """It did not come back, somebody repaired it by hand, and it returned after tests."""
    node = await needs_help(plane)
    await asyncio.to_thread(plane.lab.heal_node, node)
    await plane.until(lambda: "NOT_RESPONDING" not in plane.scheduler_states(node), "somebody repaired it")
    await plane.ended(await plane.decide(node, D.RETURN_AFTER_TESTS))
    await plane.in_state(node, S.SUCCEEDED, seconds=LONG)
    return node


async def handed_over(plane: Plane) -> str:
    """It did not come back, and a person takes it."""
    node = await needs_help(plane)
    await plane.ended(await plane.decide(node, D.HAND_OVER, reason="the board is out"))
    await plane.in_state(node, S.HANDED_OVER)
    return node


async def revised(plane: Plane) -> str:
    """A second fault asks for more than the first; the history ends while revision 2 is waited for."""
    node = await plane.broken("slurm-drained")
    await plane.proposed(node)
    await plane.broken("xid-79", node=node)
    await plane.proposed(node, revision=2)
    return node


async def next_rung(plane: Plane) -> str:
    """The reboot does not help: the next rung is proposed, and approved as a removal."""
    node = await plane.broken("xid-79", cured_by="never")
    await plane.approved(node)
    await plane.until(lambda: "still-faulty" in plane.events(node), "still faulty", LONG)
    await plane.proposed(node, revision=2)
    await plane.ended(await plane.decide(node, D.APPROVE, action=Action.REMOVE))
    await plane.in_state(node, S.REMOVED, seconds=LONG)
    return node


async def held_and_released(plane: Plane) -> str:
    """Held, released, then approved to its end."""
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    await plane.decide(node, D.HOLD)
    await plane.in_state(node, S.HELD)
    await plane.decide(node, D.RELEASE)
    await plane.approved(node)
    await plane.in_state(node, S.SUCCEEDED, seconds=LONG)
    return node


async def auto_resolved(plane: Plane) -> str:
    """The fault clears by reading before anybody has answered."""
    node = await plane.broken("slurm-drained")
    await plane.proposed(node)
    await asyncio.to_thread(plane.lab.heal_node, node)
    await plane.in_state(node, S.AUTO_RESOLVED, seconds=LONG)
    return node


async def removed(plane: Plane) -> str:
    """Approved as a removal: it stays drained."""
    node = await plane.broken("xid-119")
    await plane.approved(node, action=Action.REMOVE)
    await plane.in_state(node, S.REMOVED, seconds=LONG)
    return node


async def booted_by_another(plane: Plane) -> str:
    """Approved for when it is idle; somebody else boots it first, so that it is only tested."""
    node = await plane.busy()
    await plane.broken("xid-154", node=node)
    await plane.approved(node, moment=Moment.WHEN_IDLE)
    await plane.in_state(node, S.WAITING)
    await asyncio.to_thread(plane.by_hand, node, "power-cycle")
    await plane.in_state(node, S.SUCCEEDED, seconds=LONG)
    return node


async def words_without_effect(plane: Plane) -> str:
    """A person without a role, signals that cannot be followed, a claim; the history ends while it is proposed."""
    node = await plane.broken("xid-119")
    repair = await plane.proposed(node)
    await plane.ended(await plane.decide(node, D.APPROVE, NOBODY))
    handle = handle_of(plane.client, node)
    await handle.signal("approve")
    await handle.signal("dismiss", b"\xff\xfe\x00")
    await handle.signal("approve", {"repair": repair.id, "revision": repair.revision, "who": "root", "reason": "now"})
    return node


async def cancelled(plane: Plane) -> str:
    """Temporal's own cancel takes the proposal back."""
    node = await plane.broken("xid-79")
    await plane.proposed(node)
    await handle_of(plane.client, node).cancel()
    await plane.in_state(node, S.DISMISSED)
    return node


async def restarted(plane: Plane) -> str:
    """Its first workflow was terminated: the same repair goes on as one that needs help."""
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    await handle_of(plane.client, node).terminate("recorded")
    await plane.in_state(node, S.NEEDS_HELP, seconds=LONG)
    await plane.ended(await plane.decide(node, D.RETRY))
    await plane.in_state(node, S.SUCCEEDED, seconds=LONG)
    return node


async def continued_as_new(plane: Plane) -> str:
    """Over several short runs; the first and the last are kept."""
    repair = await a_repair_of_short_runs(plane, "xid-119", events_per_run=50)
    await plane.ended(await plane.decide(repair.node, D.APPROVE, NOBODY))
    await plane.approved(repair.node)
    await plane.in_state(repair.node, S.SUCCEEDED, seconds=LONG)
    return repair.node


Scenario = Callable[[Plane], Awaitable[str]]
SCENARIOS: Final[dict[str, Scenario]] = {
    scenario.__name__.replace("_", "-"): scenario
    for scenario in (
        succeeded,
        dismissed,
        needs_help,
        returned_after_help,
        handed_over,
        revised,
        next_rung,
        held_and_released,
        auto_resolved,
        removed,
        booted_by_another,
        words_without_effect,
        cancelled,
        restarted,
        continued_as_new,
    )
}
FILES: Final = frozenset(SCENARIOS) - {"continued-as-new"} | {"continued-as-new-first", "continued-as-new-last"}


def handle_of(client: Client, node: str, run_id: str | None = None) -> WorkflowHandle[Any, Any]:
    """The repair of a node, or one of its runs."""
    return client.get_workflow_handle(names.workflow_id(CLUSTER, node), run_id=run_id)


async def runs_of(client: Client, node: str) -> list[WorkflowHistory]:
    """The histories of the repair's runs, the first one first, once nothing is added to the last."""
    found = [await _at_rest(handle_of(client, node))]
    while run_id := found[0].events[0].workflow_execution_started_event_attributes.continued_execution_run_id:
        found.insert(0, await handle_of(client, node, run_id).fetch_history())
    return found


async def _at_rest(handle: WorkflowHandle[Any, Any]) -> WorkflowHistory:
    history = await handle.fetch_history()
    while True:
        await asyncio.sleep(QUIET_SECONDS)
        before, history = history, await handle.fetch_history()
        if len(before.events) == len(history.events):
            return history


def scrubbed(value: Any, key: str = "", event: str = "") -> Any:
    """The same history without the machine it was recorded on. Replay reads none of what is replaced."""
    if isinstance(value, list):
        return [scrubbed(item, key, event) for item in value]
    if isinstance(value, dict):
        event = value.get("eventType", event)
        return {name: scrubbed(item, name, event) for name, item in value.items() if name != "stackTrace"}
    if key == "identity":
        return "worker" if "_TASK_" in event else "client"
    if key in ("name", "normalName") and isinstance(value, str) and ("@" in value or value.startswith("tests-")):
        return "daytwo"
    return value


def as_file(history: WorkflowHistory) -> str:
    """One event a line."""
    events = scrubbed(history.to_json_dict()["events"])
    lines = ",\n".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events)
    return f'{{"events":[\n{lines}\n]}}\n'


async def record(plane: Plane, name: str, slots: asyncio.Semaphore) -> None:
    """Play one scenario and write what Temporal kept of it."""
    async with slots:
        node = await SCENARIOS[name](plane)
        runs = await runs_of(plane.client, node)
    kept = {f"{name}-first": runs[0], f"{name}-last": runs[-1]} if len(runs) > 1 else {name: runs[0]}
    for file, history in kept.items():
        (FOLDER / f"{file}.json").write_text(as_file(history))
        click.echo(f"{file}: {len(history.events)} events")


async def main(wanted: list[str]) -> None:
    """Record the named scenarios, or all."""
    slots = asyncio.Semaphore(AT_ONCE)
    with tempfile.TemporaryDirectory() as root:
        async with a_temporal() as client, a_plane(Path(root), client, nodes=NODES) as plane:
            await asyncio.gather(*(record(plane, name, slots) for name in wanted))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    unknown = sorted(set(sys.argv[1:]) - set(SCENARIOS))
    if unknown:
        sys.exit(f"found {unknown[0]!r}; allowed are {', '.join(SCENARIOS)}")
    asyncio.run(main(sys.argv[1:] or list(SCENARIOS)))
