"""Which adapter serves which cluster: built from the cluster's definition, and rebuilt when that changes.

Used by the activities and the controller. An intent names its driver: `scheduler:<cluster>`, `hardware:<cluster>:<n>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import BadInput, NotFound
from daytwo.domain.seams import ACT_OF, NEEDS_NO_DRIVER, ActKind, Hardware, Scheduler, Target
from daytwo.domain.vocabulary import Action, ClusterKind
from daytwo.hardware.command import CommandHardware
from daytwo.hardware.redfish import RedfishHardware
from daytwo.hardware.redfish_memory import Memory
from daytwo.hardware.simulated import SimulatedHardware
from daytwo.hardware.slurm import SlurmHardware
from daytwo.hardware.watching import Watching, unwatched
from daytwo.noted import NotedHardware, NotedScheduler
from daytwo.outages import Outages, bmc_of, scheduler_of
from daytwo.schedulers.simulated import SimulatedScheduler
from daytwo.schedulers.slurm import SlurmScheduler
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow


class Cluster(NamedTuple):
    """A cluster as declared now, with the adapters that reach it."""

    definition: ClusterDefinition
    policy_revision: int
    scheduler: Scheduler
    hardware: tuple[Hardware, ...]

    def able(self) -> frozenset[Action]:
        """What can be done to a node of this cluster."""
        return NEEDS_NO_DRIVER | {action for action, kind in ACT_OF.items() if self.driver_for(kind)}

    def driver_for(self, kind: ActKind) -> str | None:
        """The name of the hardware driver for `kind`, or `None`: the scheduler's own comes first, then BMCs or program.

        Their numbers are in intents, so which one is used is chosen here and not by their order.
        """
        able = [number for number, driver in enumerate(self.hardware) if kind in driver.capabilities()]
        if not able:
            return None
        last = kind is ActKind.POWER_CYCLE or self.definition.reboot_by != "scheduler"
        return f"hardware:{self.definition.name}:{able[-1] if last else able[0]}"


class Adapters(Mapping[str, Target]):
    """All clusters of a store; as a mapping, the targets of intents by driver name."""

    def __init__(self, store: Store, outages: Outages | None = None) -> None:
        self._store = store
        self._outages = outages
        self._built: dict[str, tuple[datetime, Cluster]] = {}

    def cluster(self, name: str) -> Cluster:
        """Return the cluster as it is declared now. Raises `NotFound`. Reads the store: call it in a thread."""
        with self._store.read() as session:
            row = session.get(ClusterRow, name)
        if row is None:
            raise NotFound(
                f"cluster: found {name!r}, which is not declared; `daytwo clusters list` shows those that are"
            )
        built = self._built.get(name)
        if built is None or built[0] != row.updated_at:
            built = (row.updated_at, self._build(row))
            self._built[name] = built
        return built[1]

    def __getitem__(self, driver: str) -> Target:
        what, _, rest = driver.partition(":")
        name, _, number = rest.partition(":")
        cluster = self._built[name][1] if name in self._built else self.cluster(name)
        return cluster.scheduler if what == "scheduler" else cluster.hardware[int(number)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._built)

    def __len__(self) -> int:
        return len(self._built)

    def _build(self, row: ClusterRow) -> Cluster:
        definition = ClusterDefinition.model_validate(row.definition)
        scheduler, own = self._noted(definition.name, *_scheduler(definition))
        memory, watching = Memory(self._store, definition.name, row.updated_at), self._watching(definition.name)
        if definition.hardware:
            program = CommandHardware(definition.hardware, scheduler, memory, watching=watching)
            return Cluster(definition, row.policy_revision, scheduler, (own, program))
        if not definition.bmcs:
            return Cluster(definition, row.policy_revision, scheduler, (own,))
        bmcs = RedfishHardware(definition.bmcs, scheduler, memory, watching=watching)
        return Cluster(definition, row.policy_revision, scheduler, (own, bmcs))

    def _noted(self, cluster: str, scheduler: Scheduler, own: Hardware) -> tuple[Scheduler, Hardware]:
        if self._outages is None:
            return scheduler, own
        part = scheduler_of(cluster)
        return NotedScheduler(scheduler, self._outages, part), NotedHardware(own, self._outages, part)

    def _watching(self, cluster: str) -> Watching:
        outages = self._outages
        return (lambda node: outages.watching(bmc_of(cluster, node))) if outages else unwatched


def scheduler_driver(cluster: str) -> str:
    """The name under which intents reach a cluster's scheduler."""
    return f"scheduler:{cluster}"


def _scheduler(definition: ClusterDefinition) -> tuple[Scheduler, Hardware]:
    """The scheduler's adapter, and what it can do to machines itself."""
    name = definition.name
    if definition.kind is ClusterKind.SLURM:
        opt_in = definition.policy.drain.requeue_opt_in
        return SlurmScheduler(definition.slurm, name, opt_in=opt_in), SlurmHardware(definition.slurm, name)
    if definition.kind is ClusterKind.SIMULATED:
        if definition.simulated_socket is None:
            raise BadInput(f"{name}: simulated_socket: missing; a simulated cluster needs the socket of its lab")
        socket = definition.simulated_socket
        return SimulatedScheduler(socket, name), SimulatedHardware(socket, name)
    raise BadInput(f"{name}: kind: found {definition.kind!r}; this version serves slurm and simulated")
