"""What a repair waits for that is in others' hands. The steps on scheduler and hardware ask before they write.

Nothing of others is undone or done twice: their maintenance, their reboot, a node that is switched off to save power.
"""

from __future__ import annotations

from activities.world import World
from daytwo.adapters import Cluster
from daytwo.domain.errors import NotYet
from daytwo.domain.exchange import RepairRef, StepInput
from daytwo.domain.others_hands import before_our_act, is_taken, others_work
from daytwo.domain.seams import NodeFacts

POLL_SECONDS = 5.0
WAITS = "waits for others: "
"""How a text begins that says what a repair waits for, and for whom."""
BOOT_SLACK_SECONDS = 2.0
"""Slurm's boot time moves by a second while slurmd starts."""


async def mark_after_others(world: World, cluster: Cluster, ref: RepairRef) -> None:
    """Raise `NotYet` while others work on a node that is to get our marks. A person's drain is the ledger's to see."""
    facts = await cluster.scheduler.node(ref.node)
    await wait_for(world, ref, "" if is_taken(facts) else others_work(facts))


async def act_after_others(world: World, cluster: Cluster, arg: StepInput) -> str:
    """Raise `NotYet` while others work on a node that is to be acted on; return the proof that they have booted it.

    Only a boot since this step began counts: the ones before it were known to whoever asked for it.
    """
    facts = await cluster.scheduler.node(arg.ref.node)
    await wait_for(world, arg.ref, before_our_act(facts))
    booted = facts.boot_time is not None and facts.boot_time > arg.since
    return f"booted by another hand at {facts.boot_time}" if booted else ""


async def wait_for(world: World, ref: RepairRef, whom: str) -> None:
    """Let people see for whom a repair waits, and raise `NotYet`; nobody: take back what was said."""
    if whom:
        await world.say_waiting(ref, WAITS + whom)
        raise NotYet(f"{ref.node}: {whom}", POLL_SECONDS)
    if (await world.waiting(ref)).startswith(WAITS):
        await world.say_waiting(ref, "")


def booted_since(arg: StepInput, facts: NodeFacts) -> bool:
    """True if the node has booted since what is to be done was proposed."""
    before = arg.proposal.boot_time if arg.proposal else None
    if before is None or facts.boot_time is None:
        return False
    return (facts.boot_time - before).total_seconds() > BOOT_SLACK_SECONDS
