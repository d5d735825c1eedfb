"""The demo's story: a healthy fleet, a fault, a proposal, an approval, a repair, a return. It tells as it goes."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from daytwo.domain.errors import Failed, Stale
from daytwo.lab.demo import screen
from daytwo.lab.demo.plane import Plane, until
from daytwo.lab.demo.worlds import World

HEALTHY_SECONDS: Final = 90.0
PROPOSAL_SECONDS: Final = 60.0
SETTLE_SECONDS: Final = 60.0
AUTO_SECONDS: Final = 240.0
APPROVALS: Final = 3
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
    approved = None
    if auto:
        time.sleep(READING_SECONDS)
        screen.step("Approving it")
        approved = _approve(plane, repair)
    else:
        screen.line("waiting for somebody's decision; Ctrl-C stops everything")
    ended = _follow(world, plane, repair, approved=approved)
    _conclude(world, plane, ended)


def _show_health(world: World, plane: Plane) -> None:
    screen.step("Waiting until every node is healthy")
    until(lambda: _healthy(plane) == world.nodes, seconds=HEALTHY_SECONDS, what="a healthy fleet")
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


def _approve(plane: Plane, repair: dict[str, Any]) -> int:
    """Approve what stands now, if it is the act that was read, and return its revision.

    A companion of the fault may have made another revision while the first was read.
    """
    for _ in range(APPROVALS):
        now = plane.get(f"repairs/{repair['id']}")
        if now["action"] != repair["action"]:
            raise Failed(f"{now['action']} is proposed now, and not {repair['action']} any more")
        with suppress(Stale):
            screen.block(plane.cli(*_approve_words(now), "--yes"))
            return int(now["revision"])
    raise Failed(f"{repair['id']} changed {APPROVALS} times while it was being approved")


def _follow(world: World, plane: Plane, repair: dict[str, Any], *, approved: int | None) -> dict[str, Any]:
    """Tell what happens until the repair has ended. `approved` is the revision that `--auto` has approved."""
    screen.step("What happens")
    path, give_up = f"repairs/{repair['id']}", time.monotonic() + AUTO_SECONDS
    seen, shown = _proposed_by(plane.get(path)), ""
    while True:
        progress = plane.get(f"{path}/progress", after=seen, wait=1)
        for event in progress["events"]:
            seen = event["number"]
            screen.event(event)
        shown = _glance(world, repair["node"], shown)
        if not progress["open"]:
            ended: dict[str, Any] = plane.get(path)
            return ended
        if approved is not None:
            approved = _go_on(plane, repair, progress, approved)
            if time.monotonic() > give_up:
                raise Failed(f"the repair is still {progress['state']} after {AUTO_SECONDS:g} s")


def _go_on(plane: Plane, repair: dict[str, Any], progress: dict[str, Any], approved: int) -> int:
    """What `--auto` does in a state that waits for a person: approve the same act again, or give up."""
    if progress["state"] == "needs-help":
        attention = plane.get(f"repairs/{repair['id']}")["attention"]
        raise Failed(f"the repair needs a person: {attention}")
    if progress["state"] == "proposed" and progress["revision"] > approved:
        return _approve(plane, repair)
    return approved


def _proposed_by(repair: dict[str, Any]) -> int:
    """The number of the event that made the proposal; what comes after it has not been told yet."""
    return max((event["number"] for event in repair["timeline"] if event["to_state"] == "proposed"), default=0)


def _glance(world: World, node: str, shown: str) -> str:
    glance = world.glance(node)
    if glance != shown:
        screen.line(f"{'':>12}  scheduler: {glance}")
    return glance


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
