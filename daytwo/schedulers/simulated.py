"""The scheduler of a simulated fleet (`daytwo.lab`): read over its socket, judged by the Slurm adapter's own rules.

`daytwo.adapters` builds one for a cluster of kind `simulated`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from daytwo.domain.errors import NotFound, UnknownAnswer
from daytwo.domain.seams import Act, ActKind, Look, NodeFacts, Preparation, Recorded, Request
from daytwo.domain.vocabulary import Mark, Workload
from daytwo.lab import remote
from daytwo.schedulers import slurm_acts as acts
from daytwo.schedulers import slurm_marks as marks

SETTLE_SECONDS: Final = 1.0
"""The lab carries out what it has read at once."""

OPT_IN: Final = "daytwo-requeue"
SYSTEM_USERS: Final = frozenset({"slurm"})

_PLAIN: Final = (
    "id", "name", "user", "account", "partition", "gpus", "elapsed_seconds", "time_limit_seconds", "restarts", "state",
)  # fmt: skip


class SimulatedScheduler:
    """`Scheduler` on a lab. `opt_in` is the word in a job's comment by which its owner allows a requeue."""

    settle_seconds: float = SETTLE_SECONDS

    def __init__(self, socket: str, cluster: str, *, opt_in: str = OPT_IN) -> None:
        self._socket = socket
        self._cluster = cluster
        self._opt_in = opt_in

    async def facts(self) -> tuple[NodeFacts, ...]:
        """All nodes of the fleet."""
        found = await remote.rows(self._socket, "/nodes", key="nodes")
        if not found:
            raise UnknownAnswer(f"{self._cluster}: the lab named no node at all")
        return tuple(_facts(row) for row in found)

    async def node(self, node: str) -> NodeFacts:
        """One node, read now."""
        found = await remote.rows(self._socket, f"/nodes/{node}", key="nodes")
        if len(found) != 1:
            raise UnknownAnswer(f"{self._cluster}: the lab answered {len(found)} rows for {node}")
        return _facts(found[0])

    async def started_at(self) -> datetime:
        """When the fleet's controller was started."""
        (found,) = await remote.rows(self._socket, "/controllers", key="controllers")
        try:
            return datetime.fromisoformat(found["started"])
        except (KeyError, TypeError, ValueError) as error:
            raise UnknownAnswer(f"{self._cluster}: a controller that cannot be read: {found!s:.200}") from error

    async def late_after_seconds(self) -> float:
        """None: the lab's controller knows at once which nodes are there."""
        return 0.0

    async def workloads(self, nodes: Sequence[str]) -> tuple[Workload, ...]:
        """Every job on these nodes. Raises `NotFound` for a node that the lab does not have."""
        jobs, _ = await asyncio.gather(self._jobs(), asyncio.gather(*(self._must_have(node) for node in nodes)))
        return tuple(job for job in jobs if set(job.nodes) & set(nodes) and job.state in acts.HOLDS_NODES)

    async def recorded(self, node: str, since: datetime) -> tuple[Recorded, ...]:
        """Nothing: the lab keeps no accounts."""
        return ()

    async def _must_have(self, node: str) -> None:
        try:
            await remote.rows(self._socket, f"/nodes/{node}", key="nodes")
        except NotFound:
            raise NotFound(f"node: found {node!r}, which {self._cluster} does not have") from None

    def quarantine_acts(self, cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
        """The reservation, which survives a boot, then the drain."""
        return _acts((ActKind.RESERVE, ActKind.DRAIN), cluster, node, mark)

    def release_acts(self, cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
        """The drain, then the reservation."""
        return _acts((ActKind.UNDRAIN, ActKind.UNRESERVE), cluster, node, mark)

    def interrupt_acts(self, cluster: str, node: str, mark: Mark, jobs: Sequence[Workload]) -> tuple[Act, ...]:
        """A requeue of each running job that opted in, keyed by how often it was restarted."""
        return tuple(
            Act(
                kind=ActKind.REQUEUE,
                cluster=cluster,
                node=node,
                target=job.id,
                mark=mark,
                baseline={"restarts": job.restarts},
            )
            for job in jobs
            if job.opted_into_requeue and job.may_requeue and job.state == "RUNNING" and node in job.nodes
        )

    async def prepare(self, act: Act) -> Preparation:
        """Look again, and describe the write or say why there is none."""
        left = await self._left(act)
        return order(self._socket, act, left) if isinstance(left, tuple) else left

    async def look(self, act: Act) -> Look:
        """Read the state that the act was to bring about. A fresh answer is positive evidence either way."""
        if act.kind is ActKind.REQUEUE:
            return acts.look_requeue(act, await self._job(act.target))
        return acts.look_at_marks(act, await self.node(act.node))

    async def _left(self, act: Act) -> acts.Left:
        if act.kind is ActKind.REQUEUE:
            return acts.prepare_requeue(act, await self._job(act.target))
        facts = await self.node(act.node)
        reservations = dict.fromkeys(facts.reservations, (act.node,))
        match act.kind:
            case ActKind.RESERVE:
                return acts.prepare_reserve(act, facts, reservations)
            case ActKind.DRAIN:
                return acts.prepare_drain(act, facts)
            case ActKind.UNDRAIN:
                return acts.prepare_undrain(act, facts)
            case ActKind.UNRESERVE:
                return acts.prepare_unreserve(act, reservations)
            case _:
                raise ValueError(f"{act.kind} is not an act of a scheduler")

    async def _job(self, job_id: str) -> Workload | None:
        return next((job for job in await self._jobs() if job.id == job_id), None)

    async def _jobs(self) -> list[Workload]:
        return [self._workload(row) for row in await remote.rows(self._socket, "/jobs", key="jobs")]

    def _workload(self, row: Mapping[str, Any]) -> Workload:
        try:
            return Workload(
                **{name: row[name] for name in _PLAIN},
                nodes=tuple(row["nodes"]),
                may_requeue=row["requeue"],
                opted_into_requeue=self._opt_in in row["comment"].split(),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnknownAnswer(f"{self._cluster}: a job that cannot be read: {row!s:.200} ({error})") from error


def order(socket: str, act: Act, arguments: Sequence[str] = ()) -> Request:
    """Return the request that asks the lab at `socket` for `act`. `arguments` are what `scontrol` would be given."""
    given = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    body = {
        "kind": act.kind.value,
        "node": act.node,
        "target": act.target,
        "reservation": given.get("ReservationName", ""),
        "reason": given.get("Reason", ""),
        "repair_id": act.mark.repair_id,
    }
    return Request(socket=socket, path="/acts", body=body)


def _acts(kinds: Sequence[ActKind], cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
    return tuple(Act(kind=kind, cluster=cluster, node=node, target=node, mark=mark) for kind in kinds)


def _facts(row: Mapping[str, Any]) -> NodeFacts:
    try:
        return _read_facts(row)
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownAnswer(f"a node that cannot be read: {row!s:.200} ({error})") from error


def _read_facts(row: Mapping[str, Any]) -> NodeFacts:
    states, reason, reservations = tuple(row["states"]), row["reason"], tuple(row["reservations"])
    by = marks.drained_by(states, reason, row["reason_by"], SYSTEM_USERS)
    drained_for = marks.repair_of_reason(reason) if by == "ours" else None
    others = [name for name in reservations if not marks.is_ours(name)]
    return NodeFacts(
        node=row["name"],
        states=states,
        reason=reason,
        reason_by=row["reason_by"],
        reason_at=row["reason_at"],
        boot_time=row["boot_time"],
        gpus=row["gpus"],
        gpus_configured=row["gpus_configured"],
        reservations=reservations,
        partitions=tuple(row["partitions"]),
        ownership=marks.ownership(reservations, states, by, reason),
        mark_repair_id=drained_for or marks.repair_of_reservations(reservations),
        drained_by=by,
        responding="NOT_RESPONDING" not in states,
        busy=bool({"MIXED", "ALLOCATED", "COMPLETING"} & set(states)),
        rebooting=bool({"REBOOT_REQUESTED", "REBOOT_ISSUED"} & set(states)),
        planned="; ".join(f"somebody has reserved it for maintenance: {name}" for name in others),
        at=datetime.now(UTC),
    )
