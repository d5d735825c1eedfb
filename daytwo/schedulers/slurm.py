"""The Slurm scheduler, through Slurm's own programs: reads facts, and describes the writes that the ledger carries out.

Slurm has no compare-and-set: a person's drain that comes between the read in `prepare` and the write that follows it
within milliseconds is overwritten. That window is kept small and cannot be closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from daytwo.domain.definition import SlurmAccess
from daytwo.domain.errors import UnknownAnswer
from daytwo.domain.seams import Act, ActKind, Look, NodeFacts, Preparation, Recorded
from daytwo.domain.vocabulary import Mark, Workload
from daytwo.schedulers import slurm_accounts as accounts
from daytwo.schedulers import slurm_acts as acts
from daytwo.schedulers import slurm_marks as marks
from daytwo.schedulers.slurm_cli import SlurmCli
from daytwo.schedulers.slurm_reservations import has_begun, maintained, reserved
from daytwo.schedulers.slurm_text import SlurmJob, SlurmNode, SlurmReservation, count_gpus, expand

SETTLE_SECONDS: Final = 15.0
"""A request that reached slurmctld is served even if its client died; MessageTimeout (10 s by default) bounds that."""
DEFAULT_LATE_SECONDS: Final = 300.0
"""Slurm's own SlurmdTimeout."""
HOLDS_NODES: Final = frozenset(
    {"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "STAGE_OUT", "SIGNALING", "STOPPED"}
)
WORKING: Final = frozenset({"ALLOCATED", "MIXED"})
REBOOTING: Final = frozenset({"REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT"})
SILENT: Final = frozenset({"NOT_RESPONDING", "UNKNOWN"})


class SlurmScheduler:
    """`daytwo.domain.seams.Scheduler` for one Slurm.

    `opt_in` is the word in a job's comment that permits a requeue.
    """

    settle_seconds: float = SETTLE_SECONDS

    def __init__(self, access: SlurmAccess, cluster: str, *, opt_in: str = "daytwo-requeue") -> None:
        self._cli = SlurmCli(access, cluster)
        self._opt_in = opt_in

    async def facts(self) -> tuple[NodeFacts, ...]:
        """All nodes. Raises `Unreachable` or `UnknownAnswer`."""
        nodes, reservations, config = await asyncio.gather(
            self._cli.nodes(), self._cli.reservations(), self._cli.config()
        )
        now = datetime.now(UTC)
        system_users = frozenset({"root", "slurm", config["SlurmUser"].partition("(")[0]})
        held = _by_node(reservations)
        return tuple(node_facts(node, held.get(node.name, ()), system_users, now) for node in nodes)

    async def _reserved(self) -> dict[str, tuple[str, ...]]:
        """The nodes of each reservation, by name."""
        return {each.name: each.nodes for each in await self._cli.reservations()}

    async def node(self, node: str) -> NodeFacts:
        """One node, read now. Raises `NotFound` if Slurm itself says that it does not know it."""
        found = {facts.node: facts for facts in await self.facts()}
        if node not in found:
            raise await self._cli.confirm_absent(node)
        return found[node]

    async def started_at(self) -> datetime:
        """When slurmctld was started. Slurm shows it in the local time of whoever asks."""
        shown = (await self._cli.config()).get("BOOT_TIME", "")
        try:
            return datetime.fromisoformat(shown).astimezone(UTC)
        except ValueError:
            raise UnknownAnswer(
                f"BOOT_TIME: found {shown[:60]!r}, allowed: a time such as 2026-11-30T14:21:00"
            ) from None

    async def late_after_seconds(self) -> float:
        """SlurmdTimeout, which counts anew from slurmctld's start. Where Slurm calls no node late, its default."""
        shown = (await self._cli.config()).get("SlurmdTimeout", "")
        seconds = shown.partition(" ")[0]
        if not seconds.isdecimal():
            raise UnknownAnswer(f"SlurmdTimeout: found {shown[:60]!r}, allowed: a time such as 300 sec")
        return float(seconds) or DEFAULT_LATE_SECONDS

    async def workloads(self, nodes: Sequence[str]) -> tuple[Workload, ...]:
        """Every job on these nodes. Raises `UnknownAnswer` if a node is busy with a job that Slurm does not show."""
        holding = [job for job in await self._jobs() if job.state in acts.HOLDS_NODES]
        known = {facts.node: facts for facts in await self.facts()}
        for node in nodes:
            if node not in known:
                raise await self._cli.confirm_absent(node)
            if WORKING & set(known[node].states) and not any(node in job.nodes for job in holding):
                raise UnknownAnswer(f"{node} is busy, but no job on it is shown; may this user see the jobs of others?")
        return tuple(job for job in holding if set(job.nodes) & set(nodes))

    async def recorded(self, node: str, since: datetime) -> tuple[Recorded, ...]:
        """What slurmdbd has kept of the node; nothing where Slurm keeps no accounts."""
        if (await self._cli.config()).get("AccountingStorageType") != accounts.KEPT:
            return ()
        return await self._cli.recorded(node, since)

    async def _jobs(self) -> tuple[Workload, ...]:
        now = datetime.now(UTC)
        return tuple(workload(job, self._opt_in, now) for job in await self._cli.jobs())

    async def _job(self, job_id: str) -> Workload | None:
        return next((job for job in await self._jobs() if job.id == job_id), None)

    def quarantine_acts(self, cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
        """The reservation first: it survives a reboot and keeps jobs off by itself."""
        return _acts((ActKind.RESERVE, ActKind.DRAIN), cluster, node, mark)

    def release_acts(self, cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
        """The drain first: under the reservation the node is back in service before any job may land."""
        return _acts((ActKind.UNDRAIN, ActKind.UNRESERVE), cluster, node, mark)

    def interrupt_acts(self, cluster: str, node: str, mark: Mark, jobs: Sequence[Workload]) -> tuple[Act, ...]:
        """A requeue for each running job on the node that opted in, keyed by its restart count."""
        chosen = [job for job in jobs if job.state == "RUNNING" and job.opted_into_requeue and job.may_requeue]
        return tuple(
            Act(
                kind=ActKind.REQUEUE,
                cluster=cluster,
                node=node,
                target=job.id,
                mark=mark,
                baseline={"restarts": job.restarts},
            )
            for job in chosen
            if node in job.nodes
        )

    async def prepare(self, act: Act) -> Preparation:
        """Read again and describe the write. Raises `NotYet` where Slurm cannot take a node back yet."""
        left = await self._left(act)
        return self._cli.command(*left) if isinstance(left, tuple) else left

    async def _left(self, act: Act) -> acts.Left:
        match act.kind:
            case ActKind.RESERVE:
                return acts.prepare_reserve(act, await self.node(act.node), await self._reserved())
            case ActKind.DRAIN:
                return acts.prepare_drain(act, await self.node(act.node))
            case ActKind.UNDRAIN:
                return acts.prepare_undrain(act, await self.node(act.node))
            case ActKind.UNRESERVE:
                return acts.prepare_unreserve(act, await self._reserved())
            case ActKind.REQUEUE:
                return acts.prepare_requeue(act, await self._job(act.target))
            case _:
                raise ValueError(f"{act.kind} is not an act of a scheduler")

    async def look(self, act: Act) -> Look:
        """Say whether the act happened, from facts read now."""
        if act.kind is ActKind.REQUEUE:
            return acts.look_requeue(act, await self._job(act.target))
        return acts.look_at_marks(act, await self.node(act.node))


def node_facts(
    node: SlurmNode, held: Sequence[SlurmReservation], system_users: frozenset[str], now: datetime
) -> NodeFacts:
    """Return what Slurm's words on one node mean. `held` are the reservations of the node."""
    states = frozenset(node.states)
    # One that is to come keeps nobody off yet.
    reservations = tuple(each.name for each in held if marks.is_ours(each.name) or has_begun(each, now))
    by = marks.drained_by(states, node.reason, node.reason_set_by_user, system_users)
    if by == "ours" and "INVALID_REG" in states and not any(map(marks.is_ours, reservations)):
        # Our old reason, under a drain of 24.11's own: ours never stands without its reservation.
        by = "scheduler"
    mine = marks.repair_of_reason(node.reason) if by == "ours" else None
    return NodeFacts(
        node=node.name,
        states=node.states,
        reason=node.reason,
        reason_by=node.reason_set_by_user,
        reason_at=node.reason_changed_at,
        boot_time=node.boot_time,
        gpus=marks.believed_gpus(node.gpus, states, node.reason),
        gpus_configured=node.gpus,
        reservations=reservations,
        partitions=node.partitions,
        ownership=marks.ownership(reservations, states, by, node.reason),
        mark_repair_id=mine or marks.repair_of_reservations(reservations),
        drained_by=by,
        responding=not states & SILENT and not _is_unheard(node, states),
        busy=bool(states & (WORKING | {"COMPLETING"})),
        rebooting=bool(states & REBOOTING),
        planned=maintained(held, now),
        reserved=reserved(held, now),
        at=now,
    )


def _is_unheard(node: SlurmNode, states: frozenset[str]) -> bool:
    """A slurmctld that was restarted says DOWN alone of a node that is still silent: it has forgotten how it knew."""
    return "DOWN" in states and node.boot_time is None


def workload(job: SlurmJob, opt_in: str, now: datetime) -> Workload:
    """Return a job as people are shown it."""
    # Slurm requeues a heterogeneous job only as a whole, whose other parts may not have opted in: leave it alone.
    part = bool(job.het_job_id)
    return Workload(
        id=job.shown_id,
        name=job.name,
        user=job.user_name or str(job.user_id),
        account=job.account,
        partition=job.partition,
        nodes=expand(job.nodes),
        gpus=sum(count_gpus(gres) for gres in job.gres_detail),
        elapsed_seconds=job.elapsed_seconds(now),
        time_limit_seconds=None if job.time_limit is None else job.time_limit * 60,
        may_requeue=job.requeue and job.batch_flag and not part,
        opted_into_requeue=opt_in in job.comment.split() and not part,
        restarts=job.restart_cnt,
        state=job.state,
    )


def _by_node(reservations: Iterable[SlurmReservation]) -> dict[str, list[SlurmReservation]]:
    held: dict[str, list[SlurmReservation]] = {}
    for reservation in reservations:
        for member in reservation.nodes:
            held.setdefault(member, []).append(reservation)
    return held


def _acts(kinds: Iterable[ActKind], cluster: str, node: str, mark: Mark) -> tuple[Act, ...]:
    return tuple(Act(kind=kind, cluster=cluster, node=node, target=node, mark=mark) for kind in kinds)
