"""What the demo plays in: a fleet to break, whose scheduler can be watched. Simulated here, real in `slurm_world`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

import httpx

from daytwo.domain.errors import Failed
from daytwo.lab.definition import CLUSTER
from daytwo.lab.demo.plane import NO_TLS, Plane, until

FAULT: Final = "xid-79"
REPORT_SECONDS: Final = 30.0


class World(Protocol):
    """A fleet, declared as `cluster`. `about` is one line on what it is; `up_options` are for `daytwo up`."""

    cluster: str
    about: str
    nodes: int
    up_options: tuple[str, ...]

    def open(self, plane: Plane) -> None:
        """Declare the fleet to a control plane that runs, and start its nodes."""

    def patient(self) -> str:
        """The node that is going to break: one that a job runs on."""

    def jobs(self) -> list[str]:
        """One line for each job, as its scheduler shows it."""

    def break_node(self, node: str) -> str:
        """Break the node for real, and return the line that its kernel printed."""

    def glance(self, node: str) -> str:
        """The node in one line, as its scheduler shows it now."""

    def marks(self, node: str) -> list[str]:
        """Everything of ours that is still on the node in its scheduler."""

    def close(self) -> None:
        """End everything that `open` began."""


class SimulatedWorld:
    """Nodes of `daytwo.lab`, which `daytwo up --lab` runs; the scheduler is asked through the lab's socket."""

    def __init__(self, nodes: int, speed: float) -> None:
        self.cluster = CLUSTER
        self.nodes = nodes
        self.about = f"a simulated fleet of {nodes} nodes with 8 GPUs each, {speed:g} times as fast as real"
        self.up_options: tuple[str, ...] = ("--lab", str(nodes), "--speed", f"{speed:g}")
        self._plane: Plane | None = None

    def open(self, plane: Plane) -> None:
        """Nothing to start: `daytwo up` has done it."""
        self._plane = plane

    def patient(self) -> str:
        """The third node of the job that is the widest."""
        widest = max(self._get("/jobs")["jobs"], key=lambda job: len(job["nodes"]))
        return str(widest["nodes"][min(2, len(widest["nodes"]) - 1)])

    def jobs(self) -> list[str]:
        """One line for each job that runs."""
        running = [job for job in self._get("/jobs")["jobs"] if job["nodes"]]
        return [
            f"{job['id']} {job['name']} ({job['user']}/{job['account']}) on {_span(job['nodes'])}" for job in running
        ]

    def break_node(self, node: str) -> str:
        """Through the CLI, as a person would; the line is what the node's agent reports of it."""
        self._here.cli("lab", "break", node, FAULT)

        def reported() -> str | None:
            found = self._here.get("findings", node=node, fault=FAULT)["items"]
            return str(found[0]["evidence"][-1]) if found else None

        return str(until(reported, seconds=REPORT_SECONDS, what=f"the agent of {node} to report {FAULT}"))

    def glance(self, node: str) -> str:
        """The scheduler's states and reason."""
        found = self._get(f"/nodes/{node}")["nodes"][0]
        return f"{'+'.join(found['states'])}  {found['reason']}".rstrip()

    def marks(self, node: str) -> list[str]:
        """Reservations, and a reason that names daytwo."""
        found = self._get(f"/nodes/{node}")["nodes"][0]
        return [*found["reservations"], *([found["reason"]] if "daytwo" in found["reason"] else [])]

    def close(self) -> None:
        """Nothing to end: the fleet ends with `daytwo up`."""

    @property
    def _here(self) -> Plane:
        if self._plane is None:
            raise Failed("the fleet is asked before it was opened")
        return self._plane

    def _get(self, path: str) -> Any:
        transport = httpx.HTTPTransport(uds=self._here.where["lab_socket"], verify=NO_TLS)
        with httpx.Client(transport=transport, base_url="http://lab", timeout=10) as client:
            return client.get(path).raise_for_status().json()


def _span(nodes: list[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes {nodes[0]}…{nodes[-1]}"


def state_dir() -> Path:
    """Where the demo keeps everything: below the folder that it is run from."""
    return Path.cwd() / ".daytwo/demo"
