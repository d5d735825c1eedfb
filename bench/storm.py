"""A thousand nodes break in one second: what is told, opened and contained, and how soon the CLI answers meanwhile.

    .venv/bin/python bench/storm.py --nodes 1000

The plane is `daytwo up` (Temporal's development server, gateway, controller, worker and service, each a process), the
scheduler a simulated fleet in a process of its own. The findings are written through intake, past agents and gateway.
Then all but three nodes mend, and those three are proposed. Exits with 1 when more than one notice was given, more
repairs were opened or nodes contained than allowed, or answers took longer than the limits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlmodel import col, func, select, update

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.policy import Policy, Timing
from daytwo.domain.vocabulary import ClusterKind, FindingStatus
from daytwo.intake import Observation, observe
from daytwo.lab.approval import lab_approval
from daytwo.lab.definition import node_names
from daytwo.lab.demo.children import Background
from daytwo.lab.demo.plane import Plane, until, up
from daytwo.store.engine import Store
from daytwo.store.tables import IncidentRow, IntentRow, NodeRow, RepairRow

CLUSTER: Final = "bench"
RACK: Final = 8
AT_ONCE: Final = 20
"""Nodes whose findings share a transaction."""
LIMIT_SECONDS: Final = 1.0
OVER_SECONDS: Final = 10.0
LEFT: Final = 3
FAULT: Final = "recovery-action"
"""The driver's word that a GPU must be reset: new work would fail, and it clears by reading."""
ASKED: Final = ((("status",), "status"), (("repairs", "list"), "repairs"))


class Storm:
    """A plane that is up, its cluster, and its store."""

    def __init__(self, plane: Plane, folder: Path, nodes: int) -> None:
        self._plane = plane
        self._store = Store(f"sqlite:///{plane.state_dir}/daytwo.db")
        self.names = node_names(nodes)
        (folder / "bench.yaml").write_text(json.dumps(definition(folder, self.names).model_dump(mode="json")))
        plane.cli("clusters", "apply", str(folder / "bench.yaml"))
        with self._store.write() as session:
            session.exec(update(NodeRow).values(last_heard_at=datetime.now(UTC)))
        until(lambda: self.count(NodeRow, NodeRow.state == "healthy") == nodes, seconds=120, what="healthy nodes")
        # A worker asks Temporal for work some seconds after the plane answers.
        until(lambda: not self._plane.get("status")["away"], seconds=60, what="all parts")

    def seen(self, names: Sequence[str], status: FindingStatus) -> float:
        """Have the fault begin or end on these nodes; returns how many seconds the writing took."""
        now = datetime.now(UTC)
        began = time.monotonic()
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            observe(self._store, [_observation(name, status, now) for name in some], now=datetime.now(UTC))
        return time.monotonic() - began

    def count(self, table: type[Any], *where: Any) -> int:
        """Rows of a table."""
        with self._store.read() as session:
            return session.exec(select(func.count()).select_from(table).where(*where)).one()

    def judged(self) -> bool:
        """True when nothing is due."""
        return self.count(NodeRow, NodeRow.due > NodeRow.judged) == 0

    def contained(self) -> int:
        """How many nodes were proven to take no work."""
        return self.count(IntentRow, IntentRow.kind == "drain", IntentRow.state == "proven")

    def repairs(self) -> int:
        """How many repairs were ever opened, and so workflows started."""
        return self.count(RepairRow)

    def is_over(self) -> bool:
        """True when no incident goes on."""
        return self.count(IncidentRow, col(IncidentRow.end_told_at).is_(None)) == 0

    def notices(self) -> list[str]:
        """What people were told of incidents."""
        file = self._plane.state_dir / "notices.jsonl"
        told = [json.loads(line)["text"] for line in file.read_text().splitlines()] if file.exists() else []
        return [text for text in told if "INCIDENT" in text]

    def answers(self, enough: Callable[[], bool]) -> tuple[list[float], list[float]]:
        """Ask again and again until there is enough. Returns seconds of each CLI program, and of the service alone."""
        programs: list[float] = []
        service: list[float] = []
        while not programs or not enough():
            for words, path in ASKED:
                programs.append(_seconds(partial(self._plane.cli, *words)))
                service.append(_seconds(partial(self._plane.get, path)))
        return programs, service


def _seconds(ask: Callable[[], object]) -> float:
    began = time.monotonic()
    ask()
    return time.monotonic() - began


def _observation(name: str, status: FindingStatus, now: datetime) -> Observation:
    detail = {"recovery_action": 1}
    return Observation(CLUSTER, name, FAULT, f"GPU-{name}", status, now, now, "bench", detail=detail)


def definition(folder: Path, names: Sequence[str]) -> ClusterDefinition:
    """The default policy, but that an incident is over after seconds; racks of eight."""
    racks = [names[start : start + RACK] for start in range(0, len(names), RACK)]
    return ClusterDefinition(
        name=CLUSTER,
        kind=ClusterKind.SIMULATED,
        simulated_socket=str(folder / "lab.sock"),
        groups=tuple(NodeGroup(nodes=rack, gpus=8, domains=(f"rack-{n}",)) for n, rack in enumerate(racks, 1)),
        policy=Policy(
            approval=lab_approval(),
            timing=Timing(auto_resolve_seconds=OVER_SECONDS, silent_after_seconds=24 * 3600),
        ),
    )


@contextmanager
def fleet(folder: Path, nodes: int) -> Iterator[None]:
    """The scheduler: a simulated fleet in a process of its own, in real time, without agents."""
    options = ["--socket", str(folder / "lab.sock"), "--nodes", f"{nodes}", "--speed", "1", "--no-agents"]
    running = Background("lab", [sys.executable, "-m", "daytwo.lab", *options], log=folder / "lab.log", env=os.environ)
    try:
        until((folder / "lab.sock").is_socket, seconds=60, what="the lab", check=running.check)
        yield
    finally:
        running.stop()


def measure(storm: Storm) -> dict[str, Any]:
    """Break everything, then mend all but three nodes."""
    quiet, _ = storm.answers(enough=lambda: True)
    wrote: list[float] = []
    writer = threading.Thread(target=lambda: wrote.append(storm.seen(storm.names, FindingStatus.FIRING)))
    began = time.monotonic()
    writer.start()
    told: list[float] = []

    def settled() -> bool:
        if not told and storm.notices():
            told.append(time.monotonic() - began)
        return not writer.is_alive() and bool(told) and storm.judged()

    during, service = storm.answers(enough=settled)
    seconds = time.monotonic() - began
    found = {"contained": storm.contained(), "opened": storm.repairs(), "notices": len(storm.notices())}
    text = storm.notices()[0]
    left = storm.names[:: len(storm.names) // LEFT][:LEFT]
    storm.seen([name for name in storm.names if name not in left], FindingStatus.CLEARED)
    until(storm.is_over, seconds=300, what="the end of the incident")
    until(lambda: storm.repairs() >= found["opened"] + LEFT, seconds=120, what="the proposals of the present")
    return found | {
        "text": text,
        "wrote": wrote[0],
        "told": told[0],
        "settled": seconds,
        "quiet": quiet,
        "during": during,
        "service": service,
        "opened_after": storm.repairs() - found["opened"],
        "notices_after": len(storm.notices()),
    }


def report(nodes: int, found: dict[str, Any], loads: str) -> int:
    """Print the figures; returns the exit status."""
    contain, opened = max(1, min(nodes // 20, 25)), max(5, nodes // 20)
    quiet, during = statistics.median(found["quiet"]), statistics.median(found["during"])
    slowest = max(found["service"])
    rows = (
        ("findings of all nodes written, s", f"{found['wrote']:.1f}", ""),
        ("until the notice, s from the first finding", f"{found['told']:.1f}", ""),
        ("until all nodes were judged, s", f"{found['settled']:.1f}", ""),
        ("notices", f"{found['notices']}", "1"),
        ("repairs opened (workflows)", f"{found['opened']}", f"≤ {opened}"),
        ("nodes contained", f"{found['contained']}", f"≤ {contain}"),
        ("service meanwhile, slowest answer, s", f"{slowest:.2f}", f"≤ {LIMIT_SECONDS:g}"),
        ("CLI before, median s", f"{quiet:.2f}", ""),
        ("CLI meanwhile, median s", f"{during:.2f}", f"≤ {LIMIT_SECONDS:g}"),
        ("CLI meanwhile, slowest s", f"{max(found['during']):.2f}", ""),
        ("notices when it is over", f"{found['notices_after']}", "2"),
        ("repairs opened when it is over", f"{found['opened_after']}", f"{LEFT}"),
    )
    print(found["text"] + "\n")
    print("\n".join(f"{name:45}{value:>8}  {limit}" for name, value, limit in rows))
    print(f"\n{nodes} nodes, {len(found['during'])} answers; {os.cpu_count()} cores, load average {loads}")
    well = (found["notices"], found["notices_after"], found["opened_after"]) == (1, 2, LEFT)
    slow = max(slowest, during) > LIMIT_SECONDS
    return int(slow or not well or found["opened"] > opened or found["contained"] > contain)


def main() -> int:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="how many nodes there are and break (default 1000)")
    nodes = parser.parse_args().nodes
    before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with fleet(folder, nodes), up(folder / "plane") as plane:
            found = measure(Storm(plane, folder, nodes))
    return report(nodes, found, " → ".join(f"{load[0]:.2f}" for load in (before, os.getloadavg())))


if __name__ == "__main__":
    sys.exit(main())
