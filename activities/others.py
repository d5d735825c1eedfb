"""What a repair waits for that is in others' hands. The steps on scheduler and hardware ask before they write.

Nothing of others is undone or done twice: their maintenance, their reboot, a node that is switched off to save power.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func
from sqlmodel import Session, col, select

from activities.world import World
from daytwo.adapters import Cluster
from daytwo.domain.boots import moved, spoke_after
from daytwo.domain.errors import Foreign, NotYet, TryAgain
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.others_hands import before_our_act, is_taken, others_work
from daytwo.domain.rivals import MARKS_LOST, is_whole, rival
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Channel, DecisionKind, DecisionStatus, FindingStatus
from daytwo.intake.hands import acts_on
from daytwo.store.tables import DecisionRow, FindingRow, NodeRow

POLL_SECONDS: Final = 5.0
MOST_RECORDED: Final = 5
"""Entries of the scheduler's accounting in one message."""
WAITS: Final = "waits for others: "
"""How a text begins that says what a repair waits for, and for whom."""
GO_ON: Final = (DecisionKind.APPROVE, DecisionKind.RELEASE, DecisionKind.RETRY, DecisionKind.RETURN_AFTER_TESTS)
"""Decisions by which somebody who knows the node wants the repair to go on."""


async def mark_after_others(world: World, cluster: Cluster, ref: RepairRef) -> None:
    """Raise `NotYet` while others work on a node that is to get our marks. A person's drain is the ledger's to see.

    Raises `Foreign` as `refuse_rivals` does.
    """
    await refuse_rivals(world, cluster, ref)
    facts = await cluster.scheduler.node(ref.node)
    await wait_for(world, ref, "" if is_taken(facts) else others_work(facts))


async def act_after_others(world: World, cluster: Cluster, arg: StepInput) -> str:
    """Raise `NotYet` while others work on a node that is to be acted on; return the proof that they have booted it.

    Only a boot since this step began counts: the ones before it were known to whoever asked for it. Raises `Foreign` as
    `refuse_rivals` does.
    """
    facts = await cluster.scheduler.node(arg.ref.node)
    await step_aside(world, cluster, arg.ref, facts)
    booted = facts.boot_time is not None and facts.boot_time > arg.since
    if not booted or await _runs_on(world, cluster, arg, facts):
        return ""
    return f"booted by another hand at {facts.boot_time}"


async def step_aside(world: World, cluster: Cluster, ref: RepairRef, facts: NodeFacts) -> None:
    """Raise `NotYet` while others work on a node that carries our marks, or the scheduler has lost these.

    Raises `Foreign` where somebody has taken them off, and as `refuse_rivals` does.
    """
    await refuse_rivals(world, cluster, ref)
    if is_whole(facts, ref.repair_id):
        return await wait_for(world, ref, before_our_act(facts))
    if await world.read(lambda session: are_lost(session, ref, facts)):
        return await wait_for(world, ref, "our marks are gone; it is looked who did that, or they are written again")
    raise Foreign(
        f"{ref.node}: our marks are not what we wrote ({facts.ownership}, reason {facts.reason!r}): "
        "somebody else has a hand on the node"
    )


async def refuse_rivals(world: World, cluster: Cluster, ref: RepairRef) -> None:
    """Raise `Foreign` where another tool repairs this node too, and nobody has decided since it did so last."""
    limits, now = cluster.definition.policy.rivals, world.now()
    since = now - timedelta(seconds=limits.window_seconds)
    acts = await world.read(lambda session: acts_on(session, ref.cluster, ref.node, _decided(session, ref, since)))
    if found := rival(acts, limits, now):
        kept = await _recorded(cluster, ref.node, acts[0].at)
        raise Foreign(f"{ref.node}: {found}; nothing is done to it until somebody decides{kept}")


async def _recorded(cluster: Cluster, node: str, since: datetime) -> str:
    """What the scheduler's accounting says of the node, where it can be read: who drained it, and who booted it."""
    try:
        found = await cluster.scheduler.recorded(node, since)
    except TryAgain:
        return ""
    return f" (recorded: {'; '.join(str(each) for each in found[-MOST_RECORDED:])})" if found else ""


def _decided(session: Session, ref: RepairRef, since: datetime) -> datetime:
    """When a person decided last on this repair: what others did before was known to them."""
    mine = (DecisionRow.repair_id == ref.repair_id, DecisionRow.channel != Channel.POLICY)
    agreed = (DecisionRow.status == DecisionStatus.ACCEPTED, col(DecisionRow.kind).in_(GO_ON))
    newest: datetime | None = session.exec(select(func.max(DecisionRow.at)).where(*mine, *agreed)).one()
    return max(since, newest) if newest else since


def are_lost(session: Session, ref: RepairRef, facts: NodeFacts) -> bool:
    """True where marks that are not there (any more) may be the scheduler's doing, and no person's.

    That is what the watch has found, a reason of the scheduler over ours, or what the watch has not seen yet.
    """
    if facts.drained_by == "person":
        return False
    if facts.mark_repair_id == ref.repair_id and facts.drained_by == "scheduler":
        return True
    row = session.get_one(NodeRow, (ref.cluster, ref.node))
    unseen = row.facts is not None and is_whole(NodeFacts.model_validate(row.facts), ref.repair_id)
    lost = (FindingRow.cluster == ref.cluster, FindingRow.node == ref.node, FindingRow.fault == MARKS_LOST)
    firing = select(FindingRow.id).where(*lost, FindingRow.status == FindingStatus.FIRING)
    return unseen or session.exec(firing).first() is not None


async def wait_for(world: World, ref: RepairRef, whom: str) -> None:
    """Raise `NotYet`, which people see, while the repair waits for somebody; else take back what they saw."""
    if whom:
        raise NotYet(WAITS + whom, POLL_SECONDS)
    if (await world.waiting(ref)).startswith(WAITS):
        await world.say_waiting(ref, "")


async def booted_since(world: World, cluster: Cluster, arg: StepInput, facts: NodeFacts) -> bool:
    """True if the node has booted since what is to be done was proposed."""
    before = arg.proposal.boot_time if arg.proposal else None
    return moved(before, facts.boot_time) and not await _runs_on(world, cluster, arg, facts)


async def _runs_on(world: World, cluster: Cluster, arg: StepInput, facts: NodeFacts) -> bool:
    """True if the agent speaks on from the boot of the proposal, after the boot that the scheduler tells of."""
    before = arg.proposal.boot_id if arg.proposal else None
    if before is None or cluster.definition.slurm.one_machine:
        return False
    node = await world.read(lambda session: session.get_one(NodeRow, (arg.ref.cluster, arg.ref.node)))
    skew = node.clock_skew_seconds
    return node.boot_id == before and spoke_after(facts.boot_time, heard_at=node.last_heard_at, clock_skew_seconds=skew)
