"""The scheduler of a simulated fleet (`daytwo.lab`), with the ownership rules of the Slurm adapter.

`daytwo.adapters` builds one for a cluster of kind `simulated`. Reads and writes go over the lab's Unix socket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from daytwo.domain.errors import Refused, UnknownAnswer
from daytwo.domain.seams import (
    Act,
    ActKind,
    AlreadyDone,
    Look,
    NodeFacts,
    NotOurs,
    Outcome,
    Ownership,
    Preparation,
    Request,
)
from daytwo.domain.vocabulary import Mark, Workload
from daytwo.lab import remote
from daytwo.schedulers import slurm_marks as marks

SETTLE_SECONDS: Final = 1.0
OPT_IN: Final = "daytwo-requeue"
SYSTEM_USERS: Final = frozenset({"slurm"})
_ON_THE_NODE: Final = ("RUNNING", "COMPLETING")


class SimulatedScheduler:
    """`Scheduler` on a lab. `opt_in` is the word in a job's comment by which its owner allows a requeue."""

    settle_seconds = SETTLE_SECONDS

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

    async def workloads(self, nodes: Sequence[str]) -> tuple[Workload, ...]:
        """Every job on these nodes."""
        if not nodes:
            return ()
        found = await remote.rows(self._socket, "/jobs", key="jobs", params={"nodes": ",".join(nodes)})
        return tuple(self._workload(row) for row in found)

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
            if job.opted_into_requeue and job.may_requeue and job.state == "RUNNING"
        )

    async def prepare(self, act: Act) -> Preparation:
        """Look again, and describe the write or say why there is none."""
        if act.kind is ActKind.REQUEUE:
            return await self._prepare_requeue(act)
        facts = await self.node(act.node)
        match act.kind:
            case ActKind.RESERVE | ActKind.DRAIN:
                return self._prepare_mark(act, facts)
            case ActKind.UNDRAIN | ActKind.UNRESERVE:
                return self._prepare_release(act, facts)
            case _:
                raise Refused(f"{act.kind}: a scheduler cannot do it")

    async def look(self, act: Act) -> Look:
        """Read the state that the act was to bring about. A fresh answer is positive evidence either way."""
        if act.kind is ActKind.REQUEUE:
            return await self._look_for_requeue(act)
        facts = await self.node(act.node)
        there = _is_marked(act, facts)
        done = there if act.kind in (ActKind.RESERVE, ActKind.DRAIN) else not there
        seen = (
            f"{'+'.join(facts.states)}, reason {facts.reason!r}, reservations {', '.join(facts.reservations) or 'none'}"
        )
        return Look(outcome=Outcome.DONE if done else Outcome.NOT_DONE, proof=seen, proof_type="scheduler-state")

    def _prepare_mark(self, act: Act, facts: NodeFacts) -> Preparation:
        if facts.ownership is Ownership.FOREIGN or _is_of_another_repair(act, facts):
            return NotOurs(found=facts.reason or ", ".join(facts.reservations))
        if _is_marked(act, facts):
            return AlreadyDone(proof=f"{act.node} is {'+'.join(facts.states)}: {facts.reason}")
        # Slurm's own drain is adopted; its reason would be lost with ours.
        was = facts.reason if facts.drained_by == "scheduler" else ""
        return self._request(act, reason=marks.adopting_reason(act.mark, was))

    def _prepare_release(self, act: Act, facts: NodeFacts) -> Preparation:
        if _is_marked(act, facts):
            return self._request(act)
        if act.kind is ActKind.UNDRAIN and facts.drained_by != "nobody":
            return NotOurs(found=facts.reason)
        return AlreadyDone(proof=f"{act.node} is {'+'.join(facts.states)}: {act.mark.repair_id} is not on it")

    async def _prepare_requeue(self, act: Act) -> Preparation:
        job = await self._job(act.target)
        if job is None or _is_off(job, act):
            return AlreadyDone(proof=_whereabouts(act, job))
        if not (job.opted_into_requeue and job.may_requeue):
            return NotOurs(found=f"job {job.id} of {job.user} did not opt into requeue")
        return self._request(act)

    async def _look_for_requeue(self, act: Act) -> Look:
        job = await self._job(act.target)
        if job is None or _is_off(job, act):
            outcome = Outcome.DONE
        else:
            outcome = Outcome.PENDING if job.state == "COMPLETING" else Outcome.NOT_DONE
        return Look(outcome=outcome, proof=_whereabouts(act, job), proof_type="scheduler-state")

    async def _job(self, job_id: str) -> Workload | None:
        found = await remote.rows(self._socket, "/jobs", key="jobs")
        return next((self._workload(row) for row in found if row.get("id") == job_id), None)

    def _request(self, act: Act, *, reason: str = "") -> Request:
        return order(self._socket, act, reservation=marks.reservation_name(act.mark.repair_id), reason=reason)

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


_PLAIN: Final = (
    "id", "name", "user", "account", "partition", "gpus", "elapsed_seconds", "time_limit_seconds", "restarts", "state",
)  # fmt: skip


def order(socket: str, act: Act, *, reservation: str = "", reason: str = "") -> Request:
    """Return the request that asks the lab at `socket` for `act`."""
    body = {
        "kind": act.kind.value,
        "node": act.node,
        "target": act.target,
        "reservation": reservation,
        "reason": reason,
        "repair_id": act.mark.repair_id,
    }
    return Request(socket=socket, path="/acts", body=body)


def _acts(kinds: Sequence[ActKind], cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
    return tuple(Act(kind=kind, cluster=cluster, node=node, target=node, mark=mark) for kind in kinds)


def _is_marked(act: Act, facts: NodeFacts) -> bool:
    if act.kind in (ActKind.RESERVE, ActKind.UNRESERVE):
        return marks.reservation_name(act.mark.repair_id) in facts.reservations
    return facts.drained_by == "ours" and marks.repair_of_reason(facts.reason) == act.mark.repair_id


def _is_of_another_repair(act: Act, facts: NodeFacts) -> bool:
    return facts.mark_repair_id not in (None, act.mark.repair_id)


def _is_off(job: Workload, act: Act) -> bool:
    """True if the run that was to be interrupted no longer holds the node."""
    restarted = job.restarts > int(act.baseline.get("restarts", 0)) and job.state != "COMPLETING"
    return restarted or job.state not in _ON_THE_NODE


def _whereabouts(act: Act, job: Workload | None) -> str:
    if job is None:
        return f"job {act.target} has ended"
    return f"job {job.id} is {job.state}, restarts {job.restarts}, nodes {','.join(job.nodes) or 'none'}"


def _facts(row: Mapping[str, Any]) -> NodeFacts:
    try:
        return _read_facts(row)
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownAnswer(f"a node that cannot be read: {row!s:.200} ({error})") from error


def _read_facts(row: Mapping[str, Any]) -> NodeFacts:
    states, reason = tuple(row["states"]), row["reason"]
    drained_by = marks.drained_by(states, reason, row["reason_by"], SYSTEM_USERS)
    drained_for = marks.repair_of_reason(reason) if drained_by == "ours" else None
    return NodeFacts(
        node=row["name"],
        states=states,
        reason=reason,
        reason_by=row["reason_by"],
        reason_at=row["reason_at"],
        boot_time=row["boot_time"],
        gpus=row["gpus"],
        gpus_configured=row["gpus_configured"],
        reservations=tuple(row["reservations"]),
        partitions=tuple(row["partitions"]),
        ownership=marks.ownership(row["reservations"], states, drained_by, reason),
        mark_repair_id=marks.repair_of_reservations(row["reservations"]) or drained_for,
        drained_by=drained_by,
        responding="NOT_RESPONDING" not in states,
        busy=bool({"MIXED", "ALLOCATED", "COMPLETING"} & set(states)),
        rebooting=bool({"REBOOT_REQUESTED", "REBOOT_ISSUED"} & set(states)),
        at=datetime.now(UTC),
    )
