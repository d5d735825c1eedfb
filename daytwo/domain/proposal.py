"""A recommendation as it is shown, stored, revised and decided on. Frozen: nothing is looked up later.

Triage gives the `Advice`; `build_proposal` adds what is at stake. Stored with the repair and in the workflow's history,
so new fields need a default.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from daytwo.domain.ladders import rung_of
from daytwo.domain.machines import Before
from daytwo.domain.situation import Situation
from daytwo.domain.vocabulary import Action, Frozen, Lasting, Mode, Moment, Severity, Workload

BOOTS: Final = frozenset({Action.REBOOT, Action.POWER_CYCLE})
LEAVES: Final = frozenset({Action.FAILOVER, Action.REMOVE})
NOT_CONTAINED: Final = "not contained: "
"""How the rule begins by which triage has let a node take new jobs."""
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the name of what a boot clears, not a file that is opened


class Advice(Frozen):
    """What triage advises for one node: the part of a proposal that is judged, without what is at stake.

    `fault` leads; `faults`, `entities` and `findings` are all that the repair stands for. `rung` is on the one scale of
    `daytwo.domain.ladders` and never steps down within a repair: it is the action's, or the one reached before where a
    person must look. After it failed, the next proposal is asked for with `rung + 1` as the open repair's rung.
    """

    action: Action
    rung: int
    ladder: tuple[Action, ...]
    fault: str
    title: str
    faults: tuple[str, ...]
    entities: tuple[str, ...]
    severity: Severity
    mode: Mode
    reason: str
    rule: str
    source: str
    evidence: tuple[str, ...] = ()
    findings: tuple[int, ...] = ()
    verify: tuple[str, ...] = ()
    first_seen: datetime


class Proposal(Lasting):
    """What daytwo wants to do to a node and why. `lost` and `kept` are sentences; a job's times are in `workloads`.

    `last_observation` is the last one it has taken into account. `reserved` says for whom the node is reserved.
    `before` is what the node was before its fault, and must be again; proposals of 0.1.0 do not have it. `owners` are
    all whose jobs this revision has been shown with, also of those that have ended since.
    """

    repair_id: str
    cluster: str
    node: str
    revision: int
    action: Action
    rung: int
    ladder: tuple[Action, ...]
    fault: str
    title: str
    faults: tuple[str, ...] = ()
    entities: tuple[str, ...]
    severity: Severity
    mode: Mode
    reason: str
    rule: str
    source: str
    rules_fired: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    findings: tuple[int, ...] = ()
    last_observation: int = 0
    workloads: tuple[Workload, ...] = ()
    owners: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    contain: bool = False
    moment: Moment = Moment.NOW
    policy_revision: int = 1
    boot_id: str | None = None
    boot_time: datetime | None = None
    before: Before | None = None
    reserved: str = ""
    first_seen: datetime
    at: datetime


def build_proposal(
    situation: Situation,
    advice: Advice,
    *,
    repair_id: str,
    revision: int,
    last_observation: int,
    contain: bool,
    now: datetime,
    rules_fired: tuple[str, ...] = (),
) -> Proposal:
    """Return what a person is asked: the advice, the jobs it would interrupt, what would be lost and what is kept."""
    workloads = situation.workloads if interrupts(advice.action) else ()
    moment = _moment(advice, workloads)
    return Proposal(
        **dict(advice),
        repair_id=repair_id,
        cluster=situation.cluster,
        node=situation.node,
        revision=revision,
        rules_fired=rules_fired,
        last_observation=last_observation,
        workloads=workloads or (),
        owners=tuple(sorted({owner_of(job) for job in workloads or ()})),
        lost=_lost(advice, workloads, situation.survives_reboot),
        kept=_kept(advice, workloads, situation.survives_reboot, moment),
        contain=contain,
        moment=moment,
        policy_revision=situation.policy_revision,
        boot_id=situation.boot_id,
        boot_time=situation.facts.boot_time if situation.facts else None,
        before=situation.before,
        reserved=situation.facts.reserved if situation.facts else "",
        at=now,
    )


def has_grown(old: Proposal, new: Proposal) -> bool:
    """True when `new` asks for more than `old` did: another action, more lost, or an owner who was not asked about.

    Fewer jobs, more evidence or a second companion code are no reason to ask a person again (operations.md, rule 14).
    """
    return new.action != old.action or bool(set(new.lost) - set(old.lost)) or bool(new_owners(old, new))


def owner_of(job: Workload) -> str:
    """Whose job it is: user and account."""
    return "/".join(filter(None, (job.user, job.account)))


def owners_shown(proposal: Proposal) -> set[str]:
    """Everybody whose jobs this revision was shown with; a proposal of 0.1.0 names those of now only."""
    return {*proposal.owners, *map(owner_of, proposal.workloads)}


def refreshed(old: Proposal, new: Proposal) -> Proposal:
    """`new`, which has not grown, under the revision of `old`. Whoever that was shown with stays asked about.

    Else an approval would end as soon as the next job of the same owner starts.
    """
    return new.model_copy(update={"revision": old.revision, "owners": tuple(sorted(owners_shown(old)))})


def new_owners(old: Proposal, new: Proposal) -> list[str]:
    """Who has work on the node in `new` and was in no version of `old`: jobs of one owner come and go."""
    return sorted({owner_of(job) for job in new.workloads} - owners_shown(old))


def interrupts(action: Action) -> bool:
    """True for an action that ends what runs on the node, or on one of its GPUs."""
    return rung_of(action) >= rung_of(Action.RESET_GPU)


def is_requeued(job: Workload) -> bool:
    """True for a job that may be started again elsewhere: Slurm allows it, and its owner asked for it (rule 11)."""
    return job.may_requeue and job.opted_into_requeue


def _moment(advice: Advice, workloads: tuple[Workload, ...] | None) -> Moment:
    """A node that is only degraded is never interrupted by a timer: its jobs end first (operations.md, rule 2)."""
    calm = advice.severity is not Severity.CRITICAL and interrupts(advice.action)
    return Moment.WHEN_IDLE if calm and workloads != () else Moment.NOW


def _lost(advice: Advice, workloads: tuple[Workload, ...] | None, survives: dict[str, bool]) -> tuple[str, ...]:
    """No clock in these sentences: one that is new asks a person again."""
    if not interrupts(advice.action):
        return ()
    jobs = ("unknown: the jobs on the node, the scheduler could not be read",) if workloads is None else ()
    return (*jobs, *_data_lost(advice, survives))


def _data_lost(advice: Advice, survives: dict[str, bool]) -> tuple[str, ...]:
    if advice.action is Action.RESET_GPU:
        return (f"what is in the memory of {', '.join(advice.entities)}",)
    if advice.action is Action.REPROVISION:
        return ("everything on the node's own disks",)
    if advice.action in LEAVES:
        return ("what is on the node's own disks leaves with it",)
    paths = tuple(path for path, kept in _paths(survives).items() if not kept)
    unknown = () if set(survives) - {SHARED_MEMORY} else ("unknown: whether the node's own disks survive a boot",)
    return (*paths, *unknown)


def _kept(
    advice: Advice, workloads: tuple[Workload, ...] | None, survives: dict[str, bool], moment: Moment
) -> tuple[str, ...]:
    if not interrupts(advice.action):
        return ("everything: nothing that runs is touched",)
    jobs = tuple(_job_kept(job, moment) for job in workloads or ())
    if advice.action in BOOTS:
        return (*jobs, *(path for path, kept in _paths(survives).items() if kept))
    return (*jobs, "files") if advice.action is Action.RESET_GPU else jobs


def _job_kept(job: Workload, moment: Moment) -> str:
    if moment is Moment.WHEN_IDLE:
        return f"job {job.id} of {job.user} ends first"
    if is_requeued(job):
        return f"job {job.id} of {job.user} is requeued, as it asked"
    return f"job {job.id} of {job.user} is waited for, never cancelled: it did not ask to be requeued"


def _paths(survives: dict[str, bool]) -> dict[str, bool]:
    return {SHARED_MEMORY: False, **survives}
