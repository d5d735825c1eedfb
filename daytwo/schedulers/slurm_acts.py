"""What is left of an act on Slurm, and whether it happened, decided from facts just read. Pure; for `SlurmScheduler`.

Each `prepare_*` returns the arguments of `scontrol`, or why there is nothing to write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from daytwo.domain.errors import NotYet
from daytwo.domain.seams import Act, ActKind, AlreadyDone, Look, NodeFacts, NotOurs, Outcome
from daytwo.domain.vocabulary import Workload
from daytwo.schedulers import slurm_marks as marks

Arguments = tuple[str, ...]
Left = Arguments | AlreadyDone | NotOurs

RESERVATION_DURATION: Final = "365-00:00:00"
"""Longer than any repair: a reservation that ends by itself would let jobs in."""
HOLDS_NODES: Final = frozenset(
    {"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "STAGE_OUT", "SIGNALING", "STOPPED"}
)
"""States of a job in which its nodes are not free for others."""
FRESH_BOOT: Final = timedelta(seconds=3)
"""slurmd's boot time moves by a second at first; a resume before that is undone as "unexpectedly rebooted"."""


def reason_is(act: Act, facts: NodeFacts) -> bool:
    """Say whether the node is out of service with the reason of this very repair."""
    return facts.drained_by == "ours" and marks.repair_of_reason(facts.reason) == act.mark.repair_id


def anothers(act: Act, facts: NodeFacts) -> NotOurs | None:
    """Return whose mark forbids to write: a person's, or that of another repair."""
    left_behind = marks.repair_of_reason(facts.reason) in act.baseline.get("over", ())
    is_anothers = facts.drained_by == "ours" and not (reason_is(act, facts) or left_behind)
    return NotOurs(found=quote(facts)) if facts.drained_by == "person" or is_anothers else None


def reservation_of(act: Act) -> str:
    """Return the name of the reservation that an act is about: its own, or one that an earlier repair has left."""
    return marks.reservation_name(act.mark.repair_id if act.target == act.node else act.target)


def quote(facts: NodeFacts) -> str:
    """Return the reason of a node and who set it, as people are shown it."""
    return f"{facts.reason or 'no reason'} [{facts.reason_by or 'unknown'}]"


def prepare_reserve(act: Act, facts: NodeFacts, reservations: Mapping[str, Sequence[str]]) -> Left:
    """Reserve the node for nobody's jobs. A node that is down can be reserved too."""
    name = marks.reservation_name(act.mark.repair_id)
    if name in reservations:
        return _ours_alone(act, name, reservations[name]) or AlreadyDone(proof=f"reservation {name} stands")
    return anothers(act, facts) or (
        *("create", "reservation", f"ReservationName={name}", "StartTime=now", f"Duration={RESERVATION_DURATION}"),
        *(f"Nodes={act.node}", "Users=root", "Flags=maint,ignore_jobs"),
    )


def _ours_alone(act: Act, name: str, members: Sequence[str]) -> NotOurs | None:
    if tuple(members) == (act.node,):
        return None
    return NotOurs(found=f"reservation {name} was changed by hand, it covers {','.join(members) or 'no node'}")


def prepare_drain(act: Act, facts: NodeFacts) -> Left:
    """Drain with our reason. Slurm's own drain is adopted, its reason kept inside ours."""
    if act.baseline.get("reword"):
        return _reword(act, facts)
    if "DRAIN" in facts.states and reason_is(act, facts):
        return AlreadyDone(proof=f"drained: {quote(facts)}")
    own = facts.drained_by == "scheduler" and not marks.repair_of_reason(facts.reason)
    old = facts.reason if own else ""
    return anothers(act, facts) or (
        *("update", f"NodeName={act.node}", "State=DRAIN", f"Reason={marks.adopting_reason(act.mark, old)}"),
    )


def _reword(act: Act, facts: NodeFacts) -> Left:
    """Say anew why this repair has drained the node, if it still has: a drain that somebody lifted stays lifted."""
    if "DRAIN" not in facts.states or not reason_is(act, facts):
        return AlreadyDone(proof=f"left as it is: {quote(facts)}")
    adopted = facts.reason.partition(" (was: ")[2].removesuffix(")")
    reason = marks.adopting_reason(act.mark, adopted)
    if reason == facts.reason:
        return AlreadyDone(proof=f"drained: {quote(facts)}")
    return ("update", f"NodeName={act.node}", "State=DRAIN", f"Reason={reason}")


def prepare_undrain(act: Act, facts: NodeFacts) -> Left:
    """Lift our drain. Raises `NotYet` while Slurm cannot take the node back."""
    if facts.drained_by == "nobody":
        return AlreadyDone(proof=f"not drained: {'+'.join(facts.states)}")
    if not reason_is(act, facts):
        return NotOurs(found=quote(facts))
    refuse_too_early(facts)
    # `undrain` leaves a node down that is down; `resume` lifts both, and is refused for one that is only drained idle.
    state = "RESUME" if "DOWN" in facts.states else "UNDRAIN"
    return ("update", f"NodeName={act.node}", f"State={state}")


def refuse_too_early(facts: NodeFacts) -> None:
    """Raise `NotYet` for a node that is silent, still booting, or was refused by Slurm when it registered."""
    if not facts.responding:
        raise NotYet(f"{facts.node} does not answer Slurm ({'+'.join(facts.states)})", 5.0)
    if "INVALID_REG" in facts.states:
        raise NotYet(
            f"{facts.node} registered with less than configured; Slurm takes it back when that is mended", 10.0
        )
    fresh = facts.boot_time is not None and timedelta(0) <= facts.at - facts.boot_time < FRESH_BOOT
    if facts.rebooting or fresh:
        raise NotYet(f"{facts.node} has only just booted, or is still about to", FRESH_BOOT.total_seconds())


def prepare_unreserve(act: Act, reservations: Mapping[str, Sequence[str]]) -> Left:
    """Delete our reservation."""
    name = reservation_of(act)
    if name not in reservations:
        return AlreadyDone(proof=f"no reservation {name}")
    return _ours_alone(act, name, reservations[name]) or ("delete", f"ReservationName={name}")


def prepare_requeue(act: Act, job: Workload | None) -> Left:
    """Requeue the job if it is still the same run: Slurm would kill one that already restarted elsewhere."""
    ended = _run_has_ended(act, job)
    if ended or job is None:
        return AlreadyDone(proof=ended)
    if job.state == "COMPLETING":
        return AlreadyDone(proof=f"job {job.id} is ending")
    if not (job.opted_into_requeue and job.may_requeue):
        return NotOurs(found=f"job {job.id} of {job.user} does not (or no longer) opt into a requeue")
    return ("requeue", job.id)


def _run_has_ended(act: Act, job: Workload | None) -> str:
    """Say why the run that the act is about is over, or return an empty string."""
    if job is None:
        return f"job {act.target} is gone"
    if job.restarts != act.baseline["restarts"]:
        return f"job {job.id} was started again ({job.restarts} restarts)"
    # An ended job is remembered for a while, with its nodes; a requeue would run it once more.
    on_the_node = act.node in job.nodes and job.state in HOLDS_NODES
    return "" if on_the_node else f"job {job.id} is no longer on {act.node} ({job.state})"


def look_requeue(act: Act, job: Workload | None) -> Look:
    """Say whether the run that was to be interrupted is over."""
    ended = _run_has_ended(act, job)
    if ended or job is None:
        return _seen(Outcome.DONE, ended)
    taken = Outcome.PENDING if job.state == "COMPLETING" else Outcome.NOT_DONE
    return _seen(taken, f"job {job.id} is {job.state} on {act.node}, {job.restarts} restarts")


def look_at_marks(act: Act, facts: NodeFacts) -> Look:
    """Say whether one of our two marks is there, or is gone, as the act wanted."""
    reserved = reservation_of(act) in facts.reservations
    happened = {
        ActKind.RESERVE: reserved,
        ActKind.UNRESERVE: not reserved,
        ActKind.DRAIN: "DRAIN" in facts.states and reason_is(act, facts),
        ActKind.UNDRAIN: not reason_is(act, facts),
    }[act.kind]
    shown = f"{'+'.join(facts.states)}, reason {facts.reason!r}, reservations {','.join(facts.reservations) or 'none'}"
    return _seen(Outcome.DONE if happened else Outcome.NOT_DONE, shown)


def _seen(outcome: Outcome, proof: str) -> Look:
    return Look(outcome=outcome, proof=proof, proof_type="scheduler-state")
