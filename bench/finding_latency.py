"""How soon a line of a kernel log is a durable finding, and how soon a proposal, against one Temporal update.

    .venv/bin/python bench/finding_latency.py --trials 60              as it is run; the settle time is taken off
    .venv/bin/python bench/finding_latency.py --trials 60 --settle 0   everything at once

The plane is `daytwo up` (Temporal's development server, gateway, controller, worker and service, each a process), the
node a real agent process that reads the kernel log, a new node with a new agent for every trial. What its scheduler
says comes from `daytwo.lab`. The policy's settle time is a decision and no cost: it is taken off. Without one the node
is contained while its proposal is made, which it never is as daytwo is run. Between the trials an update of a workflow
of the bench's own, with a worker of its own, goes round on the same server.

A commit is seen within a millisecond, by the database's own change counter. Exits with 1 when a p99 is over its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.policy import Breaker, Budget, Policy, Timing
from daytwo.domain.vocabulary import ClusterKind
from daytwo.lab.approval import lab_approval
from daytwo.lab.definition import node_names
from daytwo.lab.demo.children import Background
from daytwo.lab.demo.plane import Plane, until, up
from daytwo.lab.fake_nvml.harness import FakeNvml, build

LIMIT: Final = 5.0
WARM_UP: Final = 5
UPDATES_A_TRIAL: Final = 2
CLUSTER: Final = "bench"
GPUS: Final = 8
QUEUE: Final = "bench-reference"
KMSG: Final = Path("/dev/kmsg")
XID: Final = "NVRM: Xid (PCI:{bus}): 119, pid=1, name=x, Timeout after 6s of waiting for RPC response from GPU0 GSP!"
STEPS: Final = ("finding", "repair opened", "workflow's first act", "proposal made", "proposal")


@workflow.defn(name="reference", sandboxed=False)
class Reference:
    """The least that an update can be: a handler that counts."""

    def __init__(self) -> None:
        self._count = 0

    @workflow.run
    async def run(self) -> None:
        """Stay open."""
        await workflow.wait_condition(lambda: False)

    @workflow.update
    def touch(self) -> int:
        """Count one."""
        self._count += 1
        return self._count


@dataclass(frozen=True, slots=True)
class Trial:
    """Seconds from the write of the kernel line until each step was so."""

    finding: float
    proposal: float
    opened: float
    claimed: float
    made: float

    @property
    def steps(self) -> tuple[float, ...]:
        """In the order of `STEPS`."""
        return self.finding, self.opened, self.claimed, self.made, self.proposal


class Watch:
    """Sees commits of other processes without disturbing them: reading the change counter takes microseconds."""

    def __init__(self, database: Path) -> None:
        self._connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, check_same_thread=False)
        self._seen = -1

    def first(self, query: str, *values: object, seconds: float = 30.0) -> tuple[float, tuple[Any, ...]]:
        """Return when the first row of `query` was there, by `time.time`, and the row."""
        end = time.time() + seconds
        self._seen = -1
        while time.time() < end:
            if self._changed() and (row := self._connection.execute(query, values).fetchone()):
                return time.time(), row
            time.sleep(0.0005)
        raise TimeoutError(f"{query} {values}")

    def _changed(self) -> bool:
        before, self._seen = self._seen, self._connection.execute("PRAGMA data_version").fetchone()[0]
        return bool(before != self._seen)


class Node:
    """A node with an agent that reads a kernel log: this machine's, or a file."""

    def __init__(self, name: str, folder: Path, *, library: Path, kernel_log: str) -> None:
        folder.mkdir()
        self.name = name
        self._folder = folder
        self._gpus = FakeNvml(folder / "gpus", gpus=GPUS)
        self._library = library
        self._kmsg = kernel_log == "kmsg"
        self._file = folder / "kernel.log"
        self._file.write_text("6,1,1000,-;Linux version 6.1.0 (bench)\n")
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n")

    @contextmanager
    def agent(self, gateway: str, token: str) -> Iterator[None]:
        """Run its agent."""
        (self._folder / "token").write_text(token)
        log = "kmsg" if self._kmsg else f"file:{self._file}"
        options = {"node": self.name, "gateway": gateway, "token-file": self._folder / "token", "kernel-log": log}
        options |= {"state-dir": self._folder / "agent", "expect-gpus": GPUS}
        words = [word for name, value in options.items() for word in (f"--{name}", f"{value}")]
        command = [sys.executable, "-m", "daytwo.agent.main", *words, "--accept-user-records"]
        boot = {"DAYTWO_TEST_BOOT_ID_FILE": str(self._folder / "boot_id")}
        environment = {**os.environ, **self._gpus.environment(self._library), **boot}
        running = Background(self.name, command, log=self._folder / "agent.log", env=environment)
        try:
            yield
        finally:
            running.stop()

    def print_xid(self) -> float:
        """Let the driver complain of the first GPU; return when, by `time.time`."""
        address = bytes(self._gpus.gpu(0).bus_id).decode().lower()[4:].split(".")[0]
        text = XID.format(bus=address)
        began = time.time()
        if self._kmsg:
            KMSG.write_text(f"<3>{text}\n")
        else:
            with self._file.open("a") as log:
                log.write(f"3,2,2000,-;{text}\n")
        return began


class Bench:
    """A plane that is up, and what the trials need of it."""

    def __init__(self, plane: Plane, folder: Path, *, nodes: int, kernel_log: str, settle: float) -> None:
        self._plane, self._folder, self._kernel_log, self._settle = plane, folder, kernel_log, settle
        self._library = build(folder / "library")
        self._watch = Watch(plane.state_dir / "daytwo.db")
        self._names = iter(node_names(nodes))
        (folder / "bench.yaml").write_text(json.dumps(definition(folder, nodes, settle).model_dump(mode="json")))
        plane.cli("clusters", "apply", str(folder / "bench.yaml"))

    def trial(self) -> Trial:
        """Break a node that nobody has touched, and time it; afterwards its repair is dismissed."""
        name = next(self._names)
        node = Node(name, self._folder / name, library=self._library, kernel_log=self._kernel_log)
        token = json.loads(self._plane.cli("nodes", "token", f"{CLUSTER}/{name}", "-o", "json"))["token"]
        with node.agent(self._plane.where["gateway_url"], token):
            self._until_known(name)
            timed = self._timed(node)
            repair = self._plane.get("repairs", node=name)["items"][0]
            snooze = ("--reason", "bench", "--snooze", "7d")
            self._plane.cli("repairs", "dismiss", repair["id"], "--revision", f"{repair['revision']}", *snooze)
        return timed

    def _until_known(self, name: str) -> None:
        """Its GPUs have been read and all that follows from it is done."""
        self._watch.first("select 1 from nodes where name = ? and inventory like '%GPU-%'", name)
        self._watch.first("select 1 from nodes where name = ? and state = 'healthy' and judged = due", name)
        time.sleep(0.5)

    def _timed(self, node: Node) -> Trial:
        began = node.print_xid()
        durable, _ = self._watch.first("select 1 from observations where node = ? and fault = 'xid-119'", node.name)
        proposed, at = self._watch.first(
            "select r.opened_at, r.claimed_at, e.at from repairs r join repair_events e on e.repair_id = r.id"
            " where r.node = ? and r.revision >= 1",
            node.name,
        )
        opened, claimed, made = (datetime.fromisoformat(f"{text}+00:00").timestamp() - began for text in at)
        return Trial(durable - began, proposed - began - self._settle, opened, claimed, made - self._settle)


def definition(folder: Path, nodes: int, settle: float) -> ClusterDefinition:
    """A cluster in which many nodes may break one after the other."""
    everything = {"acting_share": 1, "acting_nodes": nodes, "containing_share": 1, "containing_nodes": nodes}
    policy = Policy(
        approval=lab_approval(),
        budget=Budget(**everything),
        breaker=Breaker(nodes=nodes, pool_nodes=nodes, pool_share=1),
        timing=Timing(settle_seconds=settle, settle_at_most_seconds=settle, silent_after_seconds=24 * 3600),
    )
    return ClusterDefinition(
        name=CLUSTER,
        kind=ClusterKind.SIMULATED,
        simulated_socket=str(folder / "lab.sock"),
        groups=(NodeGroup(nodes=node_names(nodes), gpus=GPUS),),
        policy=policy,
    )


@contextmanager
def fleet(folder: Path, nodes: int) -> Iterator[None]:
    """The scheduler: a simulated fleet in a process of its own, in real time, without agents."""
    options = ["--socket", str(folder / "lab.sock"), "--nodes", f"{nodes}", "--speed", "1", "--no-agents"]
    running = Background("lab", [sys.executable, "-m", "daytwo.lab", *options], log=folder / "lab.log", env=os.environ)
    try:
        until((folder / "lab.sock").is_socket, seconds=30, what="the lab", check=running.check)
        yield
    finally:
        running.stop()


@contextmanager
def reference_worker(plane: Plane, folder: Path) -> Iterator[None]:
    """A worker for the reference, in a process of its own as the plane's is."""
    command = [sys.executable, __file__, "--reference-worker"]
    running = Background("reference", command, log=folder / "reference.log", env=plane.environment())
    try:
        yield
    finally:
        running.stop()


async def serve_reference() -> None:
    """Serve the reference until this process is ended."""
    async with Worker(await temporal(os.environ), task_queue=QUEUE, workflows=[Reference]):
        await asyncio.Event().wait()


async def temporal(environment: Any) -> Client:
    """A client of the plane's Temporal."""
    return await Client.connect(environment["TEMPORAL_ADDRESS"], namespace=environment["TEMPORAL_NAMESPACE"])


async def one_update(reference: WorkflowHandle[Any, Any]) -> float:
    """Seconds of one update that is accepted and answered."""
    began = time.perf_counter()
    await reference.execute_update(Reference.touch)
    return time.perf_counter() - began


async def measure(plane: Plane, bench: Bench, trials: int) -> tuple[list[Trial], list[float]]:
    """The trials, and the updates between them; the warm-up is thrown away."""
    client = await temporal(plane.environment())
    reference = await client.start_workflow(Reference.run, id=QUEUE, task_queue=QUEUE)
    timed, updates = [], []
    for number in range(WARM_UP + trials):
        pair = [await one_update(reference) for _ in range(UPDATES_A_TRIAL)]
        trial = await asyncio.to_thread(bench.trial)
        if number >= WARM_UP:
            timed.append(trial)
            updates += pair
            say(f"{number - WARM_UP + 1}/{trials}", end="\r")
    return timed, updates


def table(timed: Sequence[Trial], updates: Sequence[float]) -> tuple[str, float]:
    """The figures as text, and the worst ratio."""
    rows = [("one Temporal update", updates)]
    rows += [("kernel line → finding durable", [trial.finding for trial in timed])]
    rows += [("kernel line → proposal committed", [trial.proposal for trial in timed])]
    reference = [quantile(updates, share) for share in (0.5, 0.99)]
    lines = [f"{'':34}{'n':>5}{'p50 ms':>9}{'p99 ms':>9}{'p50 ×':>8}{'p99 ×':>8}"]
    worst = 0.0
    for name, values in rows:
        found = [quantile(values, share) for share in (0.5, 0.99)]
        ratios = [mine / theirs for mine, theirs in zip(found, reference, strict=True)]
        worst = max(worst, ratios[1])
        cells = "".join(f"{value * 1000:9.1f}" for value in found) + "".join(f"{ratio:8.2f}" for ratio in ratios)
        lines.append(f"{name:34}{len(values):5}{cells}")
    return "\n".join(lines), worst


def where_it_goes(timed: Sequence[Trial]) -> str:
    """The steps of a trial, each with its median and p99 from the one before."""
    lines = [f"{'of which, from the step before':34}{'':5}{'p50 ms':>9}{'p99 ms':>9}"]
    for number, name in enumerate(STEPS):
        spent = [trial.steps[number] - (trial.steps[number - 1] if number else 0.0) for trial in timed]
        cells = "".join(f"{quantile(spent, share) * 1000:9.1f}" for share in (0.5, 0.99))
        lines.append(f"  {name:32}{'':5}{cells}")
    return "\n".join(lines)


def quantile(values: Sequence[float], share: float) -> float:
    """Between the two nearest values, as statistics has it; of few values the largest."""
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def say(text: str, end: str = "\n") -> None:
    """One line for whoever waits; progress only on a terminal."""
    if end == "\n" or sys.stdout.isatty():
        print(text, end=end, flush=True)


def run(trials: int, kernel_log: str, settle: float) -> int:
    """Measure and print; returns the exit status."""
    nodes = trials + WARM_UP
    before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with fleet(folder, nodes), up(folder / "plane") as plane, reference_worker(plane, folder):
            bench = Bench(plane, folder, nodes=nodes, kernel_log=kernel_log, settle=settle)
            timed, updates = asyncio.run(measure(plane, bench, trials))
    text, worst = table(timed, updates)
    loads = " → ".join(f"{load[0]:.2f}" for load in (before, os.getloadavg()))
    settled = f"settle time {settle:g} s, taken off" if settle else "settle time 0"
    say(f"{text}\n\n{where_it_goes(timed)}\n")
    say(f"kernel log: {kernel_log}; {settled}; {os.cpu_count()} cores, load average {loads}")
    say(f"limit: p99 ≤ {LIMIT:g} × one update, found {worst:.2f}")
    return int(worst > LIMIT)


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60, help="how many nodes break (default 60)")
    usable = "kmsg" if os.access(KMSG, os.R_OK | os.W_OK) else "file"
    parser.add_argument(
        "--kernel-log", choices=("kmsg", "file"), default=usable, help=f"where lines are written (default {usable})"
    )
    usual = Timing().settle_seconds
    parser.add_argument("--settle", type=float, default=usual, help=f"the policy's, seconds (default {usual:g})")
    parser.add_argument("--reference-worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reference_worker:
        asyncio.run(serve_reference())
    return run(options.trials, options.kernel_log, options.settle)


if __name__ == "__main__":
    sys.exit(main())
