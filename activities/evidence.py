"""Evidence before an act that would lose it. Asked for with the proposal; awaited, for a bounded time, before the act.

No evidence is never a reason not to repair: then the record says why there is none.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, col, select

from activities.world import World
from daytwo import evidence
from daytwo import node_requests as mailbox
from daytwo.domain.errors import NotYet
from daytwo.domain.exchange import RepairRef
from daytwo.domain.policy import Policy
from daytwo.store.tables import NodeRequestRow, NodeRow

FRESH: Final = timedelta(minutes=15)
"""Evidence that is older is collected again before the act: much may have been logged since."""
POLL_SECONDS: Final = 0.5
EARLY_SECONDS: Final = 120.0
"""With a proposal nobody waits for it."""


async def ask_early(world: World, ref: RepairRef, policy: Policy) -> None:
    """Let the agent collect while people think; whoever acts finds it there."""
    if policy.evidence.wait_seconds and not await world.read(lambda s: _silent(s, ref, policy, world.now())):
        await asyncio.to_thread(_ask, world, ref, "proposed", EARLY_SECONDS)


async def secure(world: World, ref: RepairRef, stage: str, policy: Policy) -> None:
    """Return once there is fresh evidence, or a note why there is none. Raises `NotYet` while it is being collected."""
    wait = policy.evidence.wait_seconds
    if not wait or await world.read(lambda s: _is_there(s, ref, stage, world.now())):
        return
    silent = await world.read(lambda s: _silent(s, ref, policy, world.now()))
    row = await asyncio.to_thread(_ask, world, ref, stage, wait)
    if silent:
        row = await asyncio.to_thread(mailbox.withdraw, world.store, row.id, now=world.now())
    if row.state in mailbox.UNANSWERED:
        raise NotYet(f"{ref.node}: its agent collects evidence", POLL_SECONDS)
    if row.state != mailbox.DONE:
        why = silent or row.error or row.state
        await world.write(lambda s: evidence.note_missing(s, row, why, world.now()))


def _ask(world: World, ref: RepairRef, stage: str, seconds: float) -> NodeRequestRow:
    question = mailbox.NodeRequest(
        id=f"{ref.repair_id}/{stage}/{evidence.KIND}",
        cluster=ref.cluster,
        node=ref.node,
        kind=evidence.KIND,
        ttl_seconds=seconds,
        repair_id=ref.repair_id,
    )
    mailbox.ask(world.store, question, now=world.now())
    return mailbox.answer_for(world.store, question.id, now=world.now())


def _is_there(session: Session, ref: RepairRef, stage: str, now: datetime) -> bool:
    """Whether this stage has been served, or a fresh archive of the repair is there."""
    rows = evidence.of_repair(session, ref.repair_id)
    return any(row.id.startswith(f"{ref.repair_id}/{stage}/") or (row.data and row.at > now - FRESH) for row in rows)


def _silent(session: Session, ref: RepairRef, policy: Policy, now: datetime) -> str:
    """Why it is no use to ask the agent, or ""."""
    mine = (NodeRow.cluster == ref.cluster, NodeRow.name == ref.node)
    heard = session.exec(select(col(NodeRow.last_heard_at)).where(*mine)).first()
    limit = timedelta(seconds=policy.timing.silent_after_seconds)
    return "" if heard and heard > now - limit else "its agent is silent"
