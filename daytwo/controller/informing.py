"""An open repair is told that what triage makes of its node has changed. The reconciler calls it after each look."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final

from sqlmodel import select

from daytwo.domain.errors import NotFound
from daytwo.domain.situation import Situation
from daytwo.intents import Guard
from daytwo.store.engine import Store
from daytwo.store.tables import RepairRow
from daytwo.temporal import Repairs

log = logging.getLogger(__name__)

YOUNG: Final = timedelta(seconds=15)
"""A repair this young hears of every changed outcome at once; later at most every `INFORM_EVERY` (design 4)."""
INFORM_EVERY: Final = timedelta(seconds=30)


class Informing:
    """Tells at once while the repair is young, later at most every half minute."""

    def __init__(self, store: Store, temporal: Repairs, guard: Guard) -> None:
        self._store, self._temporal, self._guard = store, temporal, guard

    async def tell(self, situation: Situation, digest: str, now: datetime) -> timedelta:
        """Tell the open repair of an outcome that it does not know; returns how long that must wait, or zero."""
        wait = await asyncio.to_thread(self._note, situation, digest, now)
        if wait is None:
            return timedelta(0)
        if wait > timedelta(0):
            return wait
        try:
            await self._temporal.look_again(situation.cluster, situation.node)
        except NotFound:
            log.info("%s: its repair has no workflow at this moment", situation.node)
        return timedelta(0)

    def _note(self, situation: Situation, digest: str, now: datetime) -> timedelta | None:
        """`None`: nothing new. Else how long to wait before telling; zero when it is written down as told."""
        with self._store.write() as session:
            self._guard(session)
            row = session.exec(
                select(RepairRow).where(RepairRow.open_key == f"{situation.cluster}/{situation.node}")
            ).first()
            if row is None or row.outcome_digest == digest:
                return None
            young = now < row.opened_at + YOUNG
            if not young and row.informed_at and now < row.informed_at + INFORM_EVERY:
                return row.informed_at + INFORM_EVERY - now
            row.outcome_digest, row.informed_at = digest, now
            session.add(row)
            return timedelta(0)
