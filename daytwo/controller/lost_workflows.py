"""Finds open repairs whose workflow was ended from outside, and goes on with them as ones that need help.

A workflow is described by its id and never listed; it is lost when two looks have missed it. Part of the reconciler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, col, select

from daytwo import repairs
from daytwo.domain.errors import TryAgain
from daytwo.domain.exchange import Run
from daytwo.domain.proposal import Proposal
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import State
from daytwo.intents import Guard
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, RepairEventRow, RepairRow
from daytwo.temporal import Repairs

log = logging.getLogger(__name__)

SECOND_LOOK: Final = timedelta(seconds=5)
"""A workflow that one look has missed is looked for again after this."""


class LostWorkflows:
    """Looks at all open repairs at a sweep, and between two at those that may have lost their workflow."""

    def __init__(self, store: Store, temporal: Repairs, guard: Guard) -> None:
        self._store = store
        self._temporal = temporal
        self._guard = guard
        self._missed: dict[str, datetime] = {}

    async def step(self, now: datetime, *, sweep: bool, untaken: Collection[str] = ()) -> None:
        """Look at every open repair, or between sweeps at those that were missed and those of `untaken` decisions.

        A Temporal that does not answer ends the look, and nothing is decided.
        """
        missed = [repair_id for repair_id, at in self._missed.items() if now >= at + SECOND_LOOK]
        if not (sweep or missed or untaken):
            return
        try:
            for row in await asyncio.to_thread(self._claimed, None if sweep else missed, untaken):
                await self._look(row, now)
        except TryAgain as error:
            log.warning("%s", error)

    async def _look(self, row: RepairRow, now: datetime) -> None:
        running = await self._temporal.is_running(row.cluster, row.node)
        self._missed.pop(row.id, None)
        if await asyncio.to_thread(self._is_lost, row.id, running, now):
            await self._go_on(row, now)
        elif not running:
            self._missed[row.id] = now

    async def _go_on(self, row: RepairRow, now: datetime) -> None:
        run = await asyncio.to_thread(self._into_help, row.id, now)
        await self._temporal.start(run, f"{row.node}: {run.attention}")

    def _claimed(self, missed: Collection[str] | None, untaken: Collection[str]) -> list[RepairRow]:
        """The open repairs that should have a workflow: these and those of the decisions; all for `None`."""
        found = select(RepairRow).where(col(RepairRow.open_key).is_not(None), RepairRow.state != repairs.OPENING)
        if missed is not None:
            decided = select(DecisionRow.repair_id).where(col(DecisionRow.id).in_(untaken))
            found = found.where(col(RepairRow.id).in_(missed) | col(RepairRow.id).in_(decided))
        with self._store.read() as session:
            return list(session.exec(found).all())

    def _is_lost(self, repair_id: str, running: bool, now: datetime) -> bool:
        with self._store.write() as session:
            self._guard(session)
            row = session.get_one(RepairRow, repair_id, with_for_update=True)
            if row.open_key is None:
                return False
            seen_before = row.missing_since is not None and row.missing_since < now
            row.missing_since = None if running else row.missing_since or now
            session.add(row)
            return not running and seen_before

    def _into_help(self, repair_id: str, now: datetime) -> Run:
        with self._store.write() as session:
            self._guard(session)
            row = session.get_one(RepairRow, repair_id, with_for_update=True)
            run = restarted_run(session, row, now)
            session.add(event_row(row, run, now))
            row.state, row.state_since, row.attention = State.NEEDS_HELP, now, run.attention
            row.revision, row.missing_since = run.revision, None
            session.add(row)
        return run


def restarted_run(session: Session, row: RepairRow, now: datetime) -> Run:
    """The run that goes on with a repair whose workflow was terminated: a person decides how."""
    numbers = session.exec(select(RepairEventRow.number).where(RepairEventRow.repair_id == row.id)).all()
    return Run(
        repair_id=row.id,
        cluster=row.cluster,
        node=row.node,
        state=State.NEEDS_HELP,
        revision=row.revision + 1,
        rung=row.rung,
        event_number=max(numbers, default=0) + 1,
        proposal=Proposal.model_validate(row.proposal) if row.proposal else None,
        disturbed=row.disturbed,
        interrupted=row.disturbed,
        attention=f"its workflow was ended from outside while it was {row.state}",
        stamps={name: datetime.fromisoformat(at) for name, at in row.stamps.items()},
        since=now,
        restarted=True,
    )


def event_row(row: RepairRow, run: Run, now: datetime) -> RepairEventRow:
    """The line of the timeline at which a person is asked, because nobody can tell how the repair stands."""
    return RepairEventRow(
        repair_id=row.id,
        number=run.event_number,
        at=now,
        event=Event.STUCK,
        from_state=row.state,
        to_state=State.NEEDS_HELP,
        text=run.attention,
    )
