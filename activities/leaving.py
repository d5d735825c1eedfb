"""What a repair that leaves its marks says on the node at its end: `removed` or `handed over`, not `under repair`."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from activities.world import World, intent_key, mark_of
from daytwo.adapters import scheduler_driver
from daytwo.domain.errors import DaytwoError
from daytwo.domain.exchange import CloseInput, RepairRef
from daytwo.domain.seams import ActKind
from daytwo.domain.vocabulary import State

log = logging.getLogger(__name__)

SECONDS: Final = 5.0
"""A scheduler that answers does so in milliseconds."""
WORDS: Final = {State.REMOVED: "removed", State.HANDED_OVER: "handed over"}


async def end_on_node(world: World, closing: CloseInput) -> None:
    """Word our drain anew where it stands. A scheduler that is away, or a freeze, keeps no repair from its end."""
    ref, text = closing.event.ref, WORDS.get(closing.event.to_state)
    if text is None:
        return
    try:
        async with asyncio.timeout(SECONDS):
            await _word(world, ref, text)
    except (DaytwoError, TimeoutError) as error:
        log.info("%s: its drain does not say that it is %s: %s", ref.node, text, error)
        await asyncio.to_thread(world.ledger.give_up, ref.repair_id, f"the repair has ended: {text}")


async def _word(world: World, ref: RepairRef, text: str) -> None:
    scheduler = (await world.cluster(ref)).scheduler
    acts = scheduler.quarantine_acts(ref.cluster, ref.node, mark_of(ref, text))
    drains = [act.model_copy(update={"baseline": {"reword": True}}) for act in acts if act.kind is ActKind.DRAIN]
    for act in drains:
        await world.ledger.carry_out(intent_key(ref.repair_id, "end", act), scheduler_driver(ref.cluster), act)
