"""The act on the machine, and its proof."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from activities import evidence, others
from activities import signatures as do
from activities.boundary import implements
from activities.patience import Patience
from activities.world import World, intent_key, mark_of
from daytwo.adapters import Cluster
from daytwo.domain.errors import Failed, NotYet, TryAgain
from daytwo.domain.exchange import StepDone, StepInput
from daytwo.domain.proposal import BOOTS
from daytwo.domain.seams import ACT_OF, Act, ActKind, Hardware
from daytwo.store.tables import IntentRow, NodeRow

PROOF_POLL_SECONDS: Final = 2.0
LONGEST_BOOT: Final = 3
"""In limits of a boot: one that moves may take so long. A machine that boots again and again moves without end."""


class HardwareActivities:
    """The activity `act`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._patience = Patience(world)

    @implements(do.ACT)
    async def act(self, arg: StepInput) -> StepDone:
        """Carry the approved action out, once, and wait for its proof; `Failed` when the policy's time is over."""
        cluster = await self.world.cluster(arg.ref)
        kind, driver = _driver(cluster, arg)
        bare = Act(kind=kind, cluster=arg.ref.cluster, node=arg.ref.node, target=arg.ref.node, mark=mark_of(arg.ref))
        key = intent_key(arg.ref.repair_id, arg.stage, bare)
        if arg.action in BOOTS and not await self._was_sent(key):
            await evidence.secure(self.world, arg.ref, arg.stage, cluster.definition.policy)
        try:
            if not await self._was_sent(key) and (seen := await others.act_after_others(self.world, cluster, arg)):
                return StepDone(text=f"{arg.action} is not needed any more", proof=seen)
            act = await self._intended(arg, bare, key, driver)
            look = await self.world.ledger.carry_out(key, driver, act)
        except TryAgain as error:
            raise await self._late(cluster, arg, await self._row(key), error) from None
        return StepDone(text=f"{arg.action} is proven", proof=look.proof)

    async def _intended(self, arg: StepInput, act: Act, key: str, driver: str) -> Act:
        """The act as it was first intended: what was true before it must not be read again after it."""
        row = await self._row(key)
        if row is not None:
            return Act.model_validate(row.act)
        node = await self.world.read(lambda s: s.get(NodeRow, (arg.ref.cluster, arg.ref.node)))
        known = act.model_copy(update={"baseline": _heard_of(node)})
        return await (await asyncio.to_thread(self._hardware, driver)).baseline(known)

    def _hardware(self, driver: str) -> Hardware:
        _, cluster, number = driver.split(":")
        return self.world.adapters.cluster(cluster).hardware[int(number)]

    async def _was_sent(self, key: str) -> bool:
        row = await self._row(key)
        return row is not None and row.state != "intended"

    async def _row(self, key: str) -> IntentRow | None:
        return await self.world.read(lambda s: s.get(IntentRow, key))

    async def _late(self, cluster: Cluster, arg: StepInput, row: IntentRow | None, error: TryAgain) -> Exception:
        """Time counts from the last send, failed try or stage of the boot, which a crash may have put off."""
        limit = cluster.definition.policy.timing.boot_seconds
        moved = row.updated_at if row and row.tries else arg.since
        sent = row.sent_at or moved if row else moved
        if (await self._patience.used(arg.ref, sent)).seconds > LONGEST_BOOT * limit:
            moved, limit = sent, LONGEST_BOOT * limit
        if row and row.proof:
            error.args = (f"{error}; last seen: {row.proof}",)
        waits = await self._patience.after(error, arg, f"{arg.action} is not proven", limit, since=moved)
        if isinstance(waits, NotYet):
            waits.delay_seconds = max(PROOF_POLL_SECONDS, waits.delay_seconds)
        return waits


def _heard_of(node: NodeRow | None) -> dict[str, Any]:
    """Who the machine is and which boot it runs, as its agent said: a driver compares before it touches power."""
    if node is None:
        return {"boot_id": None}
    identity_at = node.identity_at.isoformat() if node.identity_at else None
    return {"boot_id": node.boot_id, "identity": node.identity, "identity_at": identity_at}


def _driver(cluster: Cluster, arg: StepInput) -> tuple[ActKind, str]:
    kind = ACT_OF.get(arg.action)
    driver = cluster.driver_for(kind) if kind else None
    if kind is None or driver is None:
        raise Failed(f"{arg.ref.node}: no hardware driver of {cluster.definition.name} can {arg.action}")
    return kind, driver
