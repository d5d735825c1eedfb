"""Looks again: loads everything, asks triage, and says whether the proposal still stands."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final, NamedTuple

from sqlmodel import Session, select

from activities import signatures as do
from activities.boundary import implements
from activities.others import WAITS, are_lost
from activities.two_persons import SECOND, waits_for
from activities.world import World
from daytwo import repairs
from daytwo.adapters import Cluster
from daytwo.domain.asked import ASKED, Asked, chosen
from daytwo.domain.boots import moved, spoke_after
from daytwo.domain.cases import cases_of, clears_by_reading
from daytwo.domain.errors import TryAgain
from daytwo.domain.exchange import AssessInput, Assessment
from daytwo.domain.others_hands import others_work
from daytwo.domain.policy import Policy, Timing
from daytwo.domain.proposal import Proposal, build_proposal, has_grown, new_owners, refreshed
from daytwo.domain.seams import NodeFacts, Ownership
from daytwo.domain.situation import Situation
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose, Verdict
from daytwo.domain.vocabulary import Action, FindingStatus, State, Workload
from daytwo.faults.catalogue import catalogue
from daytwo.store.situations import load_situation, node_row
from daytwo.store.tables import FindingRow, RepairRow

RETRY_SECONDS: Final = 5.0


Answer = tuple[NodeFacts | None, tuple[Workload, ...] | None]


class Seen(NamedTuple):
    """One look at a node: what is known, what triage says of it, how far it has looked, and if others booted it."""

    situation: Situation
    verdict: Verdict
    last_observation: int
    booted: bool


class AssessActivities:
    """The activity `assess`."""

    def __init__(self, world: World) -> None:
        self.world = world

    @implements(do.ASSESS)
    async def assess(self, arg: AssessInput) -> Assessment:
        """Look at the node as it is now; raises nothing for a scheduler that is away: that is `unknown`."""
        cluster = await self.world.cluster(arg.ref)
        answer = facts, workloads = await self._ask_scheduler(cluster, arg.ref.node)
        now = self.world.now()
        seen = await self.world.read(lambda s: _look(s, arg, cluster, answer, now))
        await self._say_second(arg, cluster.definition.policy, now)
        await self._say_others(arg, facts)
        assessed = _answer(arg, seen, cluster.definition.policy, now)
        if assessed.outcome == "unsettled" and arg.state is State.WAITING:
            await self.world.say_waiting(arg.ref, assessed.why)
        shown = assessed.proposal if assessed.outcome == "stands" else None
        if shown is not None:
            await self.world.write(lambda s: repairs.refresh(s, shown))
        about = {
            "marks": await self._marks(arg, facts),
            "booted": seen.booted,
            "idle": _idle(facts, workloads),
        }
        if facts is None and arg.proposal is not None:
            return Assessment(outcome="unknown", why="the scheduler does not answer", wait_seconds=RETRY_SECONDS)
        return assessed.model_copy(update=about)

    async def _marks(self, arg: AssessInput, facts: NodeFacts | None) -> str:
        """Whose marks are on the node. Of ours that the scheduler may have lost it is not known yet."""
        if facts is None:
            return "unknown"
        ours = facts.mark_repair_id in (None, arg.ref.repair_id)
        if arg.state is State.WAITING and ours and facts.ownership is not Ownership.OURS:
            lost = await self.world.read(lambda session: are_lost(session, arg.ref, facts))
            return "unknown" if lost else facts.ownership
        return facts.ownership if ours else "foreign"

    async def _say_second(self, arg: AssessInput, policy: Policy, now: datetime) -> None:
        """Let people see that a proposal has one approval and needs another; an approval that has expired is gone."""
        if arg.state is State.PROPOSED and policy.approval.two_person:
            ref = arg.ref
            text = await self.world.read(lambda s: waits_for(s, ref.repair_id, arg.revision, policy, now=now))
            if text or (await self.world.waiting(ref)).startswith(SECOND):
                await self.world.say_waiting(ref, text)

    async def _say_others(self, arg: AssessInput, facts: NodeFacts | None) -> None:
        """Let people see whose work on the node a proposal waits for."""
        if arg.state is not State.PROPOSED or facts is None:
            return
        whom = others_work(facts)
        said = await self.world.waiting(arg.ref)
        if (whom and not said) or said.startswith(WAITS):
            await self.world.say_waiting(arg.ref, WAITS + whom if whom else "")

    async def _ask_scheduler(self, cluster: Cluster, node: str) -> tuple[NodeFacts | None, tuple[Workload, ...] | None]:
        try:
            return await asyncio.gather(cluster.scheduler.node(node), cluster.scheduler.workloads([node]))
        except TryAgain:
            return None, None


def _look(session: Session, arg: AssessInput, cluster: Cluster, answer: Answer, now: datetime) -> Seen:
    node = node_row(session, arg.ref.cluster, arg.ref.node)
    situation = load_situation(
        session,
        node,
        cluster.definition,
        policy_revision=cluster.policy_revision,
        facts=answer[0],
        workloads=answer[1],
        able=cluster.able(),
        now=now,
    )
    mine = (FindingRow.cluster == node.cluster, FindingRow.node == node.name)
    last = max(session.exec(select(FindingRow.last_observation).where(*mine)).all(), default=0)
    verdict = triage(situation, cluster.definition.policy, catalogue(), now)
    booted = _booted(arg, situation, one_machine=cluster.definition.slurm.one_machine)
    wanted = chosen(verdict, _asked(session, arg), disturbed=arg.disturbed, findings=situation.findings)
    return Seen(situation, wanted, last, booted)


def _asked(session: Session, arg: AssessInput) -> Asked | None:
    """The wish of a person that this repair is about; `None` for a repair of faults."""
    row = session.get(RepairRow, arg.ref.repair_id)
    if row is None or row.action is None or (arg.proposal is not None and arg.proposal.fault != ASKED):
        return None
    action = arg.proposal.action if arg.proposal else Action(row.action)
    return Asked(action=action, by=row.opened_by, why=row.why, at=row.opened_at)


def _answer(arg: AssessInput, seen: Seen, policy: Policy, now: datetime) -> Assessment:
    if not isinstance(seen.verdict, Propose):
        return _without_advice(arg, seen, policy, now)
    wait = settle_seconds(seen.situation, policy.timing, now) if arg.revision == 0 else 0.0
    if wait > 0:
        return Assessment(outcome="unsettled", why="its signals are still coming in", wait_seconds=wait)
    proposal = _proposal(arg, seen, seen.verdict, now)
    if arg.proposal is None:
        return Assessment(outcome="revised", why=proposal.reason, proposal=proposal)
    if has_grown(arg.proposal, proposal):
        return Assessment(outcome="revised", why=_growth(arg.proposal, proposal), proposal=proposal)
    return Assessment(outcome="stands", proposal=_refreshed(arg, proposal))


def _refreshed(arg: AssessInput, new: Proposal) -> Proposal | None:
    """What stands, as it is now, under its old revision: fewer jobs or one more sign are shown, but ask nobody."""
    old = arg.proposal
    if old is None or arg.state is not State.PROPOSED:
        return None
    current = refreshed(old, new)
    return current if current.model_copy(update={"at": old.at}) != old else None


def _without_advice(arg: AssessInput, seen: Seen, policy: Policy, now: datetime) -> Assessment:
    """Triage wants nothing now: a repair that stands stays unless its faults may clear by reading, and have."""
    firing = [f for f in seen.situation.findings if f.status is FindingStatus.FIRING]
    if arg.proposal is None:
        return Assessment(outcome="cleared", why=seen.verdict.why)
    if firing or arg.disturbed or not _clears_by_reading(arg.proposal, seen.situation, policy):
        return Assessment(outcome="stands", why=seen.verdict.why)
    ended = [f.cleared_at for f in seen.situation.findings if f.id in arg.proposal.findings and f.cleared_at]
    wait = policy.timing.auto_resolve_seconds - (now - max(ended, default=now)).total_seconds()
    if wait > 0:
        return Assessment(outcome="unsettled", why="clear, but not for long enough", wait_seconds=wait)
    return Assessment(outcome="cleared", why=f"clear by reading for {policy.timing.auto_resolve_seconds:.0f} s")


def _clears_by_reading(proposal: Proposal, situation: Situation, policy: Policy) -> bool:
    mine = [
        f.model_copy(update={"status": FindingStatus.FIRING}) for f in situation.findings if f.id in proposal.findings
    ]
    return bool(mine) and clears_by_reading(cases_of(mine, policy, catalogue()))


def settle_seconds(situation: Situation, timing: Timing, now: datetime) -> float:
    """How much longer to wait for the companions of a fault: quiet long enough, or waited at most long enough."""
    firing = [f for f in situation.findings if f.status is FindingStatus.FIRING]
    if not firing:
        return 0.0
    last, first = max(f.last_seen for f in firing), min(f.first_seen for f in firing)
    if first > now:  # the clock was put back: how long ago that is cannot be told
        return 0.0
    quiet = timing.settle_seconds - (now - last).total_seconds()
    return max(0.0, min(quiet, timing.settle_at_most_seconds - (now - first).total_seconds()))


def _proposal(arg: AssessInput, seen: Seen, verdict: Propose, now: datetime) -> Proposal:
    built = build_proposal(
        seen.situation,
        verdict.advice,
        repair_id=arg.ref.repair_id,
        revision=arg.revision + 1,
        last_observation=seen.last_observation,
        contain=verdict.contain or _is_contained(seen.situation),
        now=now,
        rules_fired=verdict.rules,
    )
    if arg.proposal is None:
        return built
    # What the node was is what it was before its fault: by now it may be less, or another machine.
    built = built.model_copy(update={"before": arg.proposal.before or built.before})
    if arg.disturbed:
        return built
    # The first boot that was seen stays the measure: a boot by another hand must not be forgotten by a revision.
    built = built.model_copy(update={"boot_id": arg.proposal.boot_id, "boot_time": arg.proposal.boot_time})
    return _only_tests(built) if seen.booted else built


def _is_contained(situation: Situation) -> bool:
    facts = situation.facts
    return facts is not None and facts.ownership in (Ownership.OURS, Ownership.HALF_DONE)


def _only_tests(proposal: Proposal) -> Proposal:
    reason = "somebody else has booted the node since: what a boot may clear must be tested before it returns"
    return proposal.model_copy(update={"action": Action.VERIFY, "reason": reason, "lost": ()})


def _booted(arg: AssessInput, situation: Situation, *, one_machine: bool) -> bool:
    """A boot time that moved is no boot while the agent speaks on from the boot of before: its clock was set.

    `one_machine`: the nodes of a lab share one kernel, whose boot id tells nothing of theirs.
    """
    before, facts = arg.proposal, situation.facts
    if before is None or arg.disturbed:
        return False
    if before.boot_id and situation.boot_id and before.boot_id != situation.boot_id:
        return True
    if facts is None or not moved(before.boot_time, facts.boot_time):
        return False
    heard_at, skew = situation.last_heard_at, situation.clock_skew_seconds
    same_boot = before.boot_id is not None and before.boot_id == situation.boot_id and not one_machine
    return not (same_boot and spoke_after(facts.boot_time, heard_at=heard_at, clock_skew_seconds=skew))


def _growth(old: Proposal, new: Proposal) -> str:
    if old.action != new.action:
        return f"{new.action} instead of {old.action}: {new.reason}"
    if lost := set(new.lost) - set(old.lost):
        return f"more would be lost: {'; '.join(sorted(lost))}"
    return f"it would concern {', '.join(new_owners(old, new))} too, whom nobody was asked about"


def _idle(facts: NodeFacts | None, workloads: tuple[Workload, ...] | None) -> bool | None:
    """A node that does not answer is not idle: somebody may be booting it, and its jobs are unknown."""
    if facts is None or workloads is None or not facts.responding:
        return None
    return not facts.busy and not workloads
