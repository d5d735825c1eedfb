"""Repairs a minute with 200 open at once, and our own share of the time that one repair takes.

    .venv/bin/python bench/repairs.py --nodes 200

The plane is `daytwo up` with a simulated fleet in which boots take seconds. First single repairs, one after the other:
from each, what people, draining, booting and tests take is taken out, and what is left is our own. Then so many nodes
break at once, all are approved at once, and the clock runs until the last has returned. Exits with 1 when the median of
our own share is over the limit, or a repair ends otherwise than in success.

Boots and tests are sped up; how long a boot may take, and an agent to answer, is what the default policy says.

Our own share is the sum of: fault seen → people told, without the settle time; approved → work begins to be drained;
drained → the node booted, without the boot; tests passed → returned.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
from sqlmodel import col, select

from daytwo.domain.policy import Breaker, Budget, Policy
from daytwo.domain.vocabulary import State
from daytwo.lab.definition import CLUSTER, lab_definition
from daytwo.lab.demo.plane import NO_TLS, Plane, until, up
from daytwo.store.engine import Store
from daytwo.store.tables import RepairEventRow, RepairRow
from workers.lab_part import PULSE_SECONDS, LabPart

LIMIT_SECONDS: Final = 5.0
SPEED: Final = 60.0
FAULT: Final = "xid-119"
ENDED: Final = (State.SUCCEEDED, State.NEEDS_HELP, State.DISMISSED, State.AUTO_RESOLVED)
OPT_IN: Final = "daytwo-requeue"
HANDS: Final = 8
"""Approvals at once; as many people would not be faster."""


PARTS: Final = ("seen → told", "approved → drained", "acting, without the boot", "tested → returned")


class Fleet:
    """A plane with a fleet in which nothing keeps many repairs from going on at once."""

    def __init__(self, plane: Plane, nodes: int) -> None:
        self._plane = plane
        self._store = Store(f"sqlite:///{plane.state_dir}/daytwo.db")
        definition = _unlimited(plane.state_dir, nodes)
        self.settle = definition.policy.timing.settle_seconds
        (plane.state_dir / "bench.json").write_text(json.dumps(definition.model_dump(mode="json")))
        plane.cli("clusters", "apply", str(plane.state_dir / "bench.json"))
        until(lambda: plane.get("status")["nodes"].get("healthy") == nodes, seconds=300, what="healthy nodes")

    def quiet(self, count: int) -> list[str]:
        """Nodes without a repair that are drained at once: no job runs there, or only such as may be requeued."""
        with self._store.read() as session:
            known = set(session.exec(select(RepairRow.node)))
        held = {node for job in self._lab("GET", "/jobs")["jobs"] if not _gives_way(job) for node in job["nodes"]}
        nodes = [node["name"] for node in self._lab("GET", "/status")["nodes"]]
        return [node for node in nodes if node not in known | held][:count]

    def broken(self, nodes: Sequence[str]) -> list[RepairRow]:
        """Break these nodes; returns their repairs once all are proposed."""
        for node in nodes:
            self._lab("POST", "/break", {"node": node, "fault": FAULT})
        until(lambda: len(self._in(nodes, State.PROPOSED, told=True)) == len(nodes), seconds=600, what="all proposals")
        return self._in(nodes, State.PROPOSED, told=True)

    def approve(self, repairs: Sequence[RepairRow]) -> None:
        """Approve them all, as fast as the service takes it."""
        with ThreadPoolExecutor(HANDS) as hands:
            list(hands.map(self._approve, repairs))

    def ended(self, nodes: Sequence[str], seconds: float = 1200) -> list[RepairRow]:
        """Wait until the repairs of these nodes have ended."""
        until(lambda: len(self._in(nodes, *ENDED)) == len(nodes), seconds=seconds, what="the end of all repairs")
        return self._in(nodes, *ENDED)

    def own_share(self, repair: RepairRow) -> dict[str, float]:
        """Seconds of a repair that were ours alone, by part."""
        stamps = {name: datetime.fromisoformat(at) for name, at in repair.stamps.items()}
        with self._store.read() as session:
            mine = (
                select(RepairEventRow).where(RepairEventRow.repair_id == repair.id).order_by(col(RepairEventRow.number))
            )
            events = {row.event: row.at for row in session.exec(mine)}
        order, booted = self._boot(repair.node)
        told = (stamps["recommended"] - stamps["detected"]).total_seconds() - self.settle
        begun = (events["moment-came"] - events["approved"]).total_seconds()
        acted = (stamps["acted"] - stamps["drained"]).total_seconds() - (booted - order).total_seconds()
        back = (stamps["returned"] - stamps["verified"]).total_seconds()
        return dict(zip(PARTS, (max(0.0, told), begun, acted, back), strict=True))

    def _boot(self, node: str) -> tuple[datetime, datetime]:
        log = [entry for entry in self._lab("GET", "/acts/log") if entry["order"]["node"] == node]
        order = next(entry["at"] for entry in reversed(log) if entry["order"]["kind"] == "reboot")
        facts = self._lab("GET", f"/nodes/{node}")["nodes"][0]
        return datetime.fromisoformat(order), datetime.fromisoformat(facts["boot_time"])

    def _in(self, nodes: Sequence[str], *states: State, told: bool = False) -> list[RepairRow]:
        wanted = (RepairRow.cluster == CLUSTER, col(RepairRow.node).in_(nodes), col(RepairRow.state).in_(states))
        with self._store.read() as session:
            rows = list(session.exec(select(RepairRow).where(*wanted)))
        return [row for row in rows if not told or "recommended" in row.stamps]

    def _approve(self, repair: RepairRow) -> None:
        body = {
            "request_id": f"bench-{repair.id}",
            "repair_id": repair.id,
            "revision": repair.revision,
            "kind": "approve",
        }
        transport = httpx.HTTPTransport(uds=self._plane.where["service_socket"], verify=NO_TLS)
        with httpx.Client(transport=transport, base_url="http://service", timeout=60) as client:
            client.post("/v1/decisions", json={**body, "reason": "bench"}).raise_for_status()

    def _lab(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        transport = httpx.HTTPTransport(uds=self._plane.where["lab_socket"], verify=NO_TLS)
        with httpx.Client(transport=transport, base_url="http://lab", timeout=60) as client:
            return client.request(method, path, json=body).raise_for_status().json()


def _gives_way(job: dict[str, Any]) -> bool:
    return OPT_IN in job["comment"]


def _unlimited(folder: Path, nodes: int) -> Any:
    usual = LabPart(folder, nodes, SPEED).definition()
    lab = lab_definition(str(folder / "lab.sock"), nodes=nodes, speed=SPEED, pulse_seconds=PULSE_SECONDS)
    many = {"acting_share": 1, "acting_nodes": nodes, "acting_per_domain": nodes}
    interruptions = {"interruptions_per_hour": 10 * nodes, "interruption_apart_seconds": 0}
    budget = Budget(**many, **interruptions, containing_share=1, containing_nodes=nodes)
    breaker = Breaker(nodes=nodes, pool_nodes=nodes, pool_share=1)
    patient = {
        "verify": lab.policy.verify.model_copy(update={"answer_seconds": Policy().verify.answer_seconds}),
        "timing": lab.policy.timing.model_copy(update={"boot_seconds": Policy().timing.boot_seconds}),
    }
    policy = lab.policy.model_copy(
        update={"budget": budget, "breaker": breaker, "approval": usual.policy.approval, **patient}
    )
    return usual.model_copy(update={"policy": policy})


def measure(fleet: Fleet, count: int, alone: int) -> dict[str, Any]:
    """Single repairs, then many at once."""
    single = []
    for node in fleet.quiet(alone):
        fleet.approve(fleet.broken([node]))
        single += fleet.ended([node])
    nodes = fleet.quiet(count)
    repairs = fleet.broken(nodes)
    began = time.monotonic()
    fleet.approve(repairs)
    many = fleet.ended(nodes)
    lasted = time.monotonic() - began
    own = [fleet.own_share(row) for row in single if row.state == State.SUCCEEDED]
    others = [row for row in (*single, *many) if row.state != State.SUCCEEDED]
    return {"own": own, "count": len(many), "seconds": lasted, "others": [_told(row) for row in others]}


def _told(repair: RepairRow) -> str:
    """How a repair ended that did not succeed, without what is its own in it."""
    return f"{repair.state}: {(repair.attention or repair.outcome).replace(repair.node, 'NODE')}"


def report(found: dict[str, Any]) -> int:
    """Print the figures; returns the exit status."""
    own = sorted(sum(parts.values()) for parts in found["own"])
    median = statistics.median(own) if own else float("inf")
    parts = [(f"  {name}, median s", f"{_median(found['own'], name):.2f}", "") for name in PARTS]
    rows = (
        ("our own share of one repair, median s", f"{median:.2f}", f"≤ {LIMIT_SECONDS:g}"),
        *parts,
        ("our own share of one repair, slowest s", f"{own[-1] if own else 0:.2f}", ""),
        ("repairs at once", f"{found['count']}", ""),
        ("until the last has returned, s", f"{found['seconds']:.1f}", ""),
        ("repairs a minute", f"{found['count'] / found['seconds'] * 60:.0f}", ""),
        ("repairs that did not succeed", f"{len(found['others'])}", "0"),
    )
    print("\n".join(f"{name:42}{value:>8}  {limit}" for name, value, limit in rows))
    for what, count in Counter(found["others"]).most_common():
        print(f"  {count} × {what}")
    print(f"\n{os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}")
    return int(median > LIMIT_SECONDS or bool(found["others"]))


def _median(own: Sequence[dict[str, float]], part: str) -> float:
    return statistics.median(each[part] for each in own) if own else float("inf")


def main() -> int:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200, help="repairs at once (default 200)")
    parser.add_argument("--single", type=int, default=5, help="repairs one after the other (default 5)")
    given = parser.parse_args()
    fleet_size = 2 * (given.nodes + given.single)
    lab = ("--lab", f"{fleet_size}", "--speed", f"{SPEED:g}")
    with tempfile.TemporaryDirectory(prefix="bench-") as name, up(Path(name) / "plane", *lab) as plane:
        found = measure(Fleet(plane, fleet_size), given.nodes, given.single)
    return report(found)


if __name__ == "__main__":
    sys.exit(main())
