"""The demo's story: a healthy fleet, a fault, a proposal, an approval, a repair, a return. It tells as it goes."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any, Final

from daytwo.domain.errors import Failed
from daytwo.lab.demo import screen
from daytwo.lab.demo.plane import Plane, until
from daytwo.lab.demo.worlds import World

HEALTHY_SECONDS: Final = 90.0
PROPOSAL_SECONDS: Final = 60.0
SETTLE_SECONDS: Final = 60.0
READING_SECONDS: Final = 3.0
"""How long `--auto` lets a watcher read the proposal before it approves."""


class NotReturned(Failed):
    """Somebody decided that the repair ends in another way."""


def tell(world: World, plane: Plane, *, auto: bool) -> None:
    """Play it to the end. Raises `Failed` if the node did not return, saying what is missing."""
    _show_health(world, plane)
    node = world.patient()
    repair = _break_it(world, plane, node)
    _propose(plane, repair)
    if auto:
        time.sleep(READING_SECONDS)
        _approve(plane, repair)
    else:
        screen.line("waiting for somebody's decision; Ctrl-C stops everything")
    ended = _follow(world, plane, repair["id"], auto=auto)
    _conclude(world, plane, ended)


def _show_health(world: World, plane: Plane) -> None:
    screen.step("Waiting until every node is healthy")
    until(lambda: _healthy(plane) == world.nodes, seconds=HEALTHY_SECONDS, what="a healthy fleet", check=lambda: None)
    screen.line(f"{world.nodes} of {world.nodes} nodes healthy. Jobs:")
    for job in world.jobs():
        screen.line(f"  {job}")


def _healthy(plane: Plane) -> int:
    counts: dict[str, int] = plane.get("status")["nodes"]
    return counts.get("healthy", 0)


def _break_it(world: World, plane: Plane, node: str) -> dict[str, Any]:
    screen.step(f"Breaking {node}")
    began = time.monotonic()
    screen.line(f"kernel log of {node}: {world.break_node(node)}")

    def proposed() -> dict[str, Any] | None:
        rows = plane.get("repairs", node=node, open_only=True)["items"]
        return next((row for row in rows if row["state"] == "proposed" and row["revision"]), None)

    found: dict[str, Any] = until(proposed, seconds=PROPOSAL_SECONDS, what=f"a proposal for {node}")
    screen.line(f"proposed {time.monotonic() - began:.1f} s later. {node} now: {world.glance(node)}")
    return found


def _propose(plane: Plane, repair: dict[str, Any]) -> None:
    screen.step("The proposal")
    screen.block(plane.cli("repairs", "show", repair["id"]))
    screen.step("How to approve it, any of these")
    signal = {"repair": repair["id"], "revision": repair["revision"], "who": "you", "reason": "demo"}
    workflow = f"repair:{repair['cluster']}:{repair['node']}"
    where = plane.where
    screen.line(f"export DAYTWO_SERVICE_SOCKET={where['service_socket']}")
    screen.line(f".venv/bin/daytwo {' '.join(_approve_words(repair))}")
    screen.line(f"Temporal UI: {plane.workflow_url(workflow)}")
    screen.line(
        f".venv/bin/temporal workflow signal --address {where['temporal_address']}"
        f" --namespace {where['temporal_namespace']} --workflow-id {workflow}"
        f" --name approve --input '{json.dumps(signal)}'"
    )


def _approve_words(repair: dict[str, Any]) -> list[str]:
    return ["repairs", "approve", repair["id"], "--revision", str(repair["revision"])]


def _approve(plane: Plane, repair: dict[str, Any]) -> None:
    screen.step("Approving it")
    screen.block(plane.cli(*_approve_words(repair), "--yes"))


def _follow(world: World, plane: Plane, repair_id: str, *, auto: bool) -> dict[str, Any]:
    screen.step("What happens")
    repair: dict[str, Any] = plane.get(f"repairs/{repair_id}")
    seen = max((event["number"] for event in repair["timeline"] if event["to_state"] == "proposed"), default=0)
    shown, asked = "", False
    while True:
        progress = plane.get(f"repairs/{repair_id}/progress", after=seen, wait=1)
        for event in progress["events"]:
            seen = event["number"]
            screen.event(event)
        shown = _glance(world, repair["node"], shown)
        if not progress["open"]:
            break
        if progress["state"] == "needs-help" and not asked:
            asked = True
            _ask_for_help(plane.get(f"repairs/{repair_id}"), auto=auto)
    ended: dict[str, Any] = plane.get(f"repairs/{repair_id}")
    return ended


def _glance(world: World, node: str, shown: str) -> str:
    glance = world.glance(node)
    if glance != shown:
        screen.line(f"{'':>12}  scheduler: {glance}")
    return glance


def _ask_for_help(repair: dict[str, Any], *, auto: bool) -> None:
    if auto:
        raise Failed(f"the repair needs a person: {repair['attention']}")
    screen.line(f"needs a person: {repair['attention']}")
    screen.line(f"answers: .venv/bin/daytwo repairs show {repair['id']}")


def _conclude(world: World, plane: Plane, repair: dict[str, Any]) -> None:
    node = repair["node"]
    screen.step(f"{node}: {repair['state']}")
    screen.table(screen.stamps({name: datetime.fromisoformat(at) for name, at in repair["stamps"].items()}))
    if repair["state"] != "succeeded":
        raise NotReturned(f"the repair of {node} ended {repair['state']}: {repair['outcome']}")
    until(
        lambda: plane.get(f"nodes/{world.cluster}/{node}")["state"] == "healthy",
        seconds=SETTLE_SECONDS,
        what=f"{node} to be healthy again",
    )
    left = world.marks(node)
    if left:
        raise Failed(f"{node} still carries marks of ours: {left}")
    screen.line(f"{node} is healthy again and carries no mark of ours: {world.glance(node)}")
    screen.line(plane.cli("audit", "verify").strip())
