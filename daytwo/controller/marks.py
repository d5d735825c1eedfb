"""Our marks on nodes, written and lifted outside of workflows: containment, and marks that nothing stands behind.

Part of the reconciler. A mark names its repair or its incident. Once that is over, the mark is lifted through the
ledger; one of a repair that ended with its marks left on (removed, handed over) stays, and one that the store does not
know is not touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import func
from sqlmodel import Session, col, select

from daytwo.adapters import Cluster, scheduler_driver
from daytwo.domain.errors import NotYet
from daytwo.domain.ids import incident_of
from daytwo.domain.repair_states import LEAVES_MARKS
from daytwo.domain.seams import Act, ActKind, NodeFacts
from daytwo.domain.vocabulary import Mark
from daytwo.intents import Guard, Ledger
from daytwo.store.engine import Store
from daytwo.store.tables import IncidentRow, IntentRow, NodeRow, RepairRow

TRIES: Final = 5
"""Looks at an act within one look at the node; after that the node is looked at again."""
SHORT_SECONDS: Final = 1.0
"""Whoever must wait for longer is not waited for: other nodes are due too."""
LATER_SECONDS: Final = 5.0
"""Until the next look at a node whose repair has gone on since this one."""
SEEN_AFTER: Final = timedelta(seconds=30)
"""By then the scheduler has been read again: what it says of the marks of a repair that ended is no old answer."""


class Marks:
    """Writes and lifts our marks on one node at a time."""

    def __init__(self, store: Store, ledger: Ledger, guard: Guard) -> None:
        self._store = store
        self._ledger = ledger
        self._guard = guard

    async def contain(
        self, cluster: Cluster, node: str, mark: Mark, *, again: str = "", while_in: Collection[str] | None = None
    ) -> None:
        """Keep new work off the node; nothing that runs is touched. Raises `TryAgain`, or `Foreign` and its like.

        `again` names the reason to write once more what stood before. For the mark of a repair, `while_in` are the
        states in which it does not write or lift its marks by itself.
        """
        acts = cluster.scheduler.quarantine_acts(cluster.definition.name, node, mark)
        lifted = await asyncio.to_thread(self._times_lifted, mark.repair_id, node)
        guard = self._guard if while_in is None else partial(self._still_in, mark.repair_id, while_in)
        await self._carry_out(acts, f"{mark.repair_id}/{node}/contain-{lifted}{again}", guard, overtakes=False)

    async def lift(self, cluster: Cluster, node: str, owner: str) -> None:
        """Lift the marks that `owner`, a repair or an incident, has on the node. Raises as `contain` does."""
        acts = cluster.scheduler.release_acts(cluster.definition.name, node, Mark(repair_id=owner, text="lifted"))
        lifted = await asyncio.to_thread(self._times_lifted, owner, node)
        await self._carry_out(acts, f"{owner}/{node}/lift-{lifted}", self._guard, overtakes=True)

    def _still_in(self, repair_id: str, states: Collection[str], session: Session) -> None:
        self._guard(session)
        repair = session.get(RepairRow, repair_id, with_for_update=True, populate_existing=True)
        if repair is None or repair.state not in states:
            raise NotYet(f"{repair_id}: it has gone on, and sees to its marks by itself", LATER_SECONDS)

    async def _carry_out(self, acts: Sequence[Act], key: str, guard: Guard, *, overtakes: bool) -> None:
        for act in acts:
            await self._one(f"{key}/{act.kind}", act, guard, overtakes=overtakes)

    async def _one(self, key: str, act: Act, guard: Guard, *, overtakes: bool) -> None:
        for _ in range(TRIES):
            try:
                driver = scheduler_driver(act.cluster)
                await self._ledger.carry_out(key, driver, act, guard=guard, overtakes=overtakes)
                return
            except NotYet as error:
                if error.delay_seconds > SHORT_SECONDS:
                    raise
                await asyncio.sleep(min(error.delay_seconds, 0.5))
        raise NotYet(f"{act.node}: {act.kind} is not proven yet")

    def _times_lifted(self, owner: str, node: str) -> int:
        """A node may be contained again for the same incident; what was proven before proves nothing then."""
        lifted = (
            IntentRow.repair_id == owner,
            IntentRow.node == node,
            IntentRow.kind == ActKind.UNRESERVE,
            IntentRow.state == "proven",
        )
        with self._store.read() as session:
            return session.exec(select(func.count()).select_from(IntentRow).where(*lifted)).one()


def mark_on(row: NodeRow) -> str | None:
    """Whose mark the scheduler shows on a node."""
    return (row.facts or {}).get("mark_repair_id")


def carries(facts: NodeFacts | None, owner: str) -> bool:
    """True if a node carries the whole mark of `owner`."""
    return facts is not None and facts.mark_repair_id == owner and facts.ownership == "ours"


def orphaned(
    session: Session, rows: Sequence[NodeRow], opened: Mapping[str, RepairRow], now: datetime
) -> dict[str, str]:
    """Return, by node, the marks that nothing stands behind any more, and those that an open repair takes over."""
    marks = {row.name: mark for row in rows if (mark := mark_on(row)) and mark != _open_on(opened, row.name)}
    if not marks:
        return {}
    ended = _ended(session, set(marks.values()), now)
    incidents = _incidents(session, {incident_of(mark) for mark in marks.values()})
    return {node: mark for node, mark in marks.items() if mark in ended or _yields(mark, node in opened, incidents)}


def _open_on(opened: Mapping[str, RepairRow], node: str) -> str | None:
    return opened[node].id if node in opened else None


def _ended(session: Session, owners: set[str], now: datetime) -> set[str]:
    """Repairs that have ended, and not by leaving their marks to somebody."""
    ended = (col(RepairRow.id).in_(owners), col(RepairRow.closed_at) < now - SEEN_AFTER)
    return set(session.exec(select(RepairRow.id).where(*ended, col(RepairRow.state).not_in(LEAVES_MARKS))))


def _incidents(session: Session, owners: set[str]) -> dict[str, bool]:
    """Incidents, and whether each goes on."""
    found = select(IncidentRow.id, IncidentRow.open_key).where(col(IncidentRow.id).in_(owners))
    return {incident: key is not None for incident, key in session.exec(found)}


def _yields(mark: str, to_repair: bool, incidents: Mapping[str, bool]) -> bool:
    """An incident's mark goes when the incident is over, and when a repair of the node takes over."""
    goes_on = incidents.get(incident_of(mark))
    return goes_on is not None and (to_repair or not goes_on)
