"""Everything a repair does to a scheduler: quarantine, the right to act, drain, lift, rejoin. Each try is short."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func
from sqlmodel import Session, col, select

from activities import by_policy, others
from activities import signatures as do
from activities.boundary import implements
from activities.patience import LONGEST_OUTAGE, Patience
from activities.world import World, class_of, mark_of
from daytwo import budgets, repairs
from daytwo.adapters import Cluster
from daytwo.domain.errors import Failed, Foreign, NotYet, TryAgain
from daytwo.domain.exchange import RepairRef, Right, StepDone, StepInput
from daytwo.domain.interruptions import HOUR, too_many
from daytwo.domain.repair_states import RULES
from daytwo.domain.seams import ActKind, NodeFacts, Ownership
from daytwo.domain.vocabulary import FindingStatus, State, Workload
from daytwo.left_marks import left_on
from daytwo.store.situations import node_row
from daytwo.store.tables import FindingRow, IntentRow, NodeRow

POLL_SECONDS: Final = 2.0
LIFT_SECONDS: Final = 600.0
"""As long as a node may take to rejoin."""
HEARD_WITHIN_SECONDS: Final = 120.0
"""A node returns only if its agent was heard this recently: two pulses."""


class SchedulerActivities:
    """The activities `quarantine`, `take-right`, `drain`, `lift-marks` and `rejoin`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._patience = Patience(world)

    @implements(do.QUARANTINE)
    async def quarantine(self, arg: StepInput) -> StepDone:
        """Write our marks. Raises `Foreign` where another's mark stands, `Failed` after the state's limit."""
        cluster = await self.world.cluster(arg.ref)
        try:
            await others.mark_after_others(self.world, cluster, arg.ref)
            proof = await self.mark(cluster, arg)
        except TryAgain as error:
            raise await self._in_time(State.QUARANTINING, arg, error) from None
        return StepDone(text="no new work lands on the node", proof=proof)

    async def mark(self, cluster: Cluster, arg: StepInput) -> str:
        """Write (or write again) the marks of this repair, over what an earlier one has left; idempotent in a stage."""
        acts = cluster.scheduler.quarantine_acts(arg.ref.cluster, arg.ref.node, mark_of(arg.ref))
        if left := await self.world.read(lambda s: left_on(s, arg.ref)):
            acts = tuple(act.model_copy(update={"baseline": {**act.baseline, "over": left}}) for act in acts)
        return await self.world.carry_out(arg.ref, arg.stage, acts)

    async def _in_time(self, state: State, arg: StepInput, error: TryAgain) -> TryAgain:
        """Return what to raise while the state has time. Raises `Failed` after it."""
        limit = RULES[state].limit or LONGEST_OUTAGE
        return await self._patience.after(error, arg, f"{state} has not ended", limit.total_seconds())

    @implements(do.TAKE_RIGHT)
    async def take_right(self, arg: StepInput) -> Right:
        """Take the permission to have one more node out, if the budget has it now."""
        cluster = await self.world.cluster(arg.ref)
        policy, now = cluster.definition.policy, self.world.now()
        if shut := policy.closed(arg.action, class_of(arg.proposal), now):
            await self.world.say_waiting(arg.ref, shut.says)
            return Right(granted=False, text=shut.says, opens_at=shut.opens_at)
        problem = (
            await self._others_first(cluster, arg)
            or await self.world.read(lambda s: by_policy.holds_back(s, arg, policy, now))
            or await self._interrupts_too_much(cluster, arg, now)
            or await self.world.write(lambda s: budgets.take_right(s, arg.ref, policy.budget, now))
        )
        await self.world.say_waiting(arg.ref, problem)
        return Right(granted=not problem, text=problem or "the approved moment has come and the budget allows it")

    async def _others_first(self, cluster: Cluster, arg: StepInput) -> str:
        """For whom the repair waits before it takes its right; while the scheduler does not answer nobody knows."""
        try:
            await others.act_after_others(self.world, cluster, arg)
        except NotYet as error:
            return str(error)
        except TryAgain as error:
            return f"it is not known which jobs would be interrupted: {error}"
        return ""

    async def _interrupts_too_much(self, cluster: Cluster, arg: StepInput, now: datetime) -> str:
        """Why work may not be interrupted now. The scheduler is asked for it only where some was of late."""
        budget = cluster.definition.policy.budget
        since = now - max(HOUR, timedelta(seconds=budget.interruption_apart_seconds))
        past = await self.world.read(lambda s: repairs.interruptions(s, arg.ref, since))
        if not past:
            return ""
        try:
            jobs = await cluster.scheduler.workloads([arg.ref.node])
        except TryAgain as error:
            return f"it is not known which jobs would be interrupted: {error}"
        acts = cluster.scheduler.interrupt_acts(arg.ref.cluster, arg.ref.node, mark_of(arg.ref), jobs)
        return too_many({act.target for act in acts}, past, budget, now)

    @implements(do.DRAIN)
    async def drain(self, arg: StepInput) -> StepDone:
        """Requeue the jobs that opted in and wait for the others. Never by force: after the policy's time it asks.

        From a node that does not answer nothing is requeued: its ranks may still write where the next ones would read.
        """
        cluster = await self.world.cluster(arg.ref)
        limit = cluster.definition.policy.drain.timeout_seconds
        try:
            return await self._drain(cluster, arg)
        except TryAgain as error:
            raise await self._patience.after(error, arg, "not drained", limit) from None

    async def _drain(self, cluster: Cluster, arg: StepInput) -> StepDone:
        facts = await cluster.scheduler.node(arg.ref.node)
        if not arg.disturbed and await others.booted_since(self.world, cluster, arg, facts):
            return StepDone(text="somebody else has booted the node", booted_by_another=True)
        await others.step_aside(self.world, cluster, arg.ref, facts)
        jobs = await cluster.scheduler.workloads([arg.ref.node])
        if facts.responding:
            acts = cluster.scheduler.interrupt_acts(arg.ref.cluster, arg.ref.node, mark_of(arg.ref), jobs)
            await self.world.carry_out(arg.ref, arg.stage, acts)
        if facts.busy or jobs:
            raise await self._busy(cluster, arg, facts, jobs)
        # A job that has left is no longer among the acts of this try: its requeue is proven here.
        await self.world.ledger.carry_on(arg.ref.repair_id)
        return StepDone(text="no job runs on the node", interrupted=await self._interrupted(arg))

    async def _busy(self, cluster: Cluster, arg: StepInput, facts: NodeFacts, jobs: tuple[Workload, ...]) -> Exception:
        limit = cluster.definition.policy.drain.timeout_seconds
        names = ", ".join(f"{job.id} ({job.user})" for job in jobs[:5]) or "jobs that are ending"
        if not facts.responding:
            names += "; the node does not answer, so nothing is requeued until its scheduler has given it up"
        if await self._patience.is_late(arg, limit):
            return Failed(f"{arg.ref.node}: not drained after {limit:.0f} s; {names} still run, and nothing is forced")
        return NotYet(f"{arg.ref.node}: waiting for {names}", POLL_SECONDS)

    async def _interrupted(self, arg: StepInput) -> bool:
        return await self.world.read(lambda s: repairs.has_requeued(s, arg.ref.repair_id))

    @implements(do.LIFT)
    async def lift(self, arg: StepInput) -> StepDone:
        """Take our marks off, in reverse. What is not ours (any more) is left alone and is no error."""
        if arg.taking_back and await self._interrupted(arg):
            return StepDone(text="work was interrupted already: the marks stay", interrupted=True)
        cluster = await self.world.cluster(arg.ref)
        try:
            proof = await self._lift(cluster, arg)
        except Foreign as error:
            return StepDone(text=str(error))
        except TryAgain as error:
            since = await self.world.read(lambda s: _began(s, arg)) or self.world.now()
            raise await self._patience.after(
                error, arg, "our marks are not lifted", LIFT_SECONDS, since=since
            ) from None
        return StepDone(text="our marks are lifted", proof=proof)

    async def _lift(self, cluster: Cluster, arg: StepInput) -> str:
        acts = cluster.scheduler.release_acts(arg.ref.cluster, arg.ref.node, mark_of(arg.ref))
        return await self.world.carry_out(arg.ref, arg.stage, acts)

    async def _lift_left(self, cluster: Cluster, arg: StepInput) -> None:
        """Delete the reservations that earlier repairs of the node have left. A dismissed one leaves them standing."""
        for left in await self.world.read(lambda s: left_on(s, arg.ref)):
            acts = cluster.scheduler.release_acts(arg.ref.cluster, arg.ref.node, mark_of(arg.ref))
            old = tuple(act.model_copy(update={"target": left}) for act in acts if act.kind is ActKind.UNRESERVE)
            await self.world.carry_out(arg.ref, arg.stage, old)

    @implements(do.REJOIN)
    async def rejoin(self, arg: StepInput) -> StepDone:
        """Lift our marks and see the node good: taking work, and its agent heard. A fault since the tests stops it."""
        fresh = await self.world.read(lambda s: _newer_findings(s, arg))
        if fresh:
            return StepDone(text=f"{', '.join(fresh)} fired again after the tests", still_faulty=True)
        cluster = await self.world.cluster(arg.ref)
        try:
            await self._lift(cluster, arg)
            await self._lift_left(cluster, arg)
            _takes_work(await cluster.scheduler.node(arg.ref.node), arg.ref)
            node = await self.world.read(lambda s: node_row(s, arg.ref.cluster, arg.ref.node))
            _was_heard(node, self.world.now())
        except TryAgain as error:
            raise await self._in_time(State.REJOINING, arg, error) from None
        return StepDone(text="the node takes work again")


def _began(session: Session, arg: StepInput) -> datetime | None:
    """When the first write of this stage was intended: a lift has no state of its own that began with it."""
    mine = col(IntentRow.id).startswith(f"{arg.ref.repair_id}/{arg.stage}/", autoescape=True)
    return session.exec(select(func.min(IntentRow.created_at)).where(mine)).one()


def _newer_findings(session: Session, arg: StepInput) -> list[str]:
    firing = (
        FindingRow.cluster == arg.ref.cluster,
        FindingRow.node == arg.ref.node,
        FindingRow.status == FindingStatus.FIRING,
        FindingRow.last_observation > arg.judged_up_to,
    )
    proposed = set(arg.proposal.faults) | {arg.proposal.fault} if arg.proposal else set()
    found = session.exec(select(FindingRow.fault).where(*firing)).all()
    return sorted(set(found) & proposed)


def _takes_work(facts: NodeFacts, ref: RepairRef) -> None:
    bad = {"DRAIN", "DOWN", "FAIL", "INVALID_REG", "NOT_RESPONDING"} & set(facts.states)
    if bad or not facts.responding or facts.ownership is not Ownership.FREE:
        raise NotYet(f"{ref.node}: the scheduler says {'+'.join(facts.states)}", POLL_SECONDS)


def _was_heard(node: NodeRow, now: datetime) -> None:
    if node.last_heard_at is None or abs((now - node.last_heard_at).total_seconds()) > HEARD_WITHIN_SECONDS:
        raise NotYet(f"{node.name}: its agent has not been heard", POLL_SECONDS)
