"""After a restore: makes the store's open repairs and Temporal's agree again, before anything is done to a node.

Part of the reconciler, and the first thing it does. Temporal is the truth for what is going on, so a repair in a state
in which nothing is sent goes on as its workflow knows it, and one that has ended is written down as ended. Where acts
may have been sent that the store has forgotten, the workflow ends and a person is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final

from sqlmodel import col, select, update

from daytwo import repairs
from daytwo.controller import settled_rows as rows
from daytwo.controller.lost_workflows import event_row
from daytwo.controller.means import Means
from daytwo.domain.errors import TryAgain
from daytwo.domain.exchange import Run
from daytwo.domain.ids import incident_of
from daytwo.domain.message import clean
from daytwo.domain.repair_states import is_terminal
from daytwo.domain.vocabulary import State
from daytwo.store import audit
from daytwo.store.restored import ACTOR, SUBJECT, unsettled
from daytwo.store.tables import ClusterRow, IncidentRow, RepairRow, RestoreRow
from daytwo.temporal import Repairs
from daytwo.temporal_runs import Known, TemporalRuns

log = logging.getLogger(__name__)

CALM: Final = frozenset({State.PROPOSED, State.APPROVED, State.WAITING, State.HELD, State.NEEDS_HELP})
"""States in which a repair sends nothing: its workflow alone knows all that there is to know."""


class Settling:
    """Looks for a restore that is not settled, and settles it."""

    def __init__(self, means: Means, temporal: Repairs) -> None:
        self._store, self._adapters, self._notifier, self._guard, self._now = means
        self._temporal = temporal
        self._is_done = False

    async def is_done(self) -> bool:
        """True once nothing is left to settle; until then no node is to be judged."""
        if self._is_done:
            return True
        restore = await asyncio.to_thread(self._unsettled)
        if restore is None:
            self._is_done = True
            return True
        try:
            await self._settle(restore)
        except TryAgain as error:
            log.warning("not settled after the restore yet: %s", error)
            return False
        return True

    def _unsettled(self) -> RestoreRow | None:
        with self._store.read() as session:
            return unsettled(session)

    async def _settle(self, restore: RestoreRow) -> None:
        runs = TemporalRuns(self._temporal.client)
        known = await runs.since(restore.taken_at)
        newest = {each.run.repair_id: each for each in known}
        told: Counter[str] = Counter()
        for each in newest.values():
            told[await self._agree(runs, each)] += 1
        for row in await asyncio.to_thread(self._open_without, set(newest)):
            told[await self._ask(rows.run_of(row))] += 1
        strange = await self._strange_marks()
        await self._tell(restore, told, strange)
        await asyncio.to_thread(self._write_settled, told, strange)

    async def _agree(self, runs: TemporalRuns, known: Known) -> str:
        """Make the row of one repair say what Temporal says; returns what became of it."""
        run = known.run
        if known.completed and is_terminal(run.state):
            return await asyncio.to_thread(self._write_ended, run)
        if await asyncio.to_thread(self._has_ended, run):
            await runs.terminate(known, "the store says that this repair has ended")
            return "ended before"
        if known.running and run.state in CALM and await asyncio.to_thread(self._is_ahead, run):
            return await asyncio.to_thread(self._write_going_on, run)
        if known.completed:
            return "not owned"
        await runs.terminate(known, rows.FORGOTTEN)
        return await self._ask(run)

    async def _ask(self, run: Run) -> str:
        """Go on with a repair as one that needs help: nobody can tell what was done to the node."""
        asking = await asyncio.to_thread(self._write_asking, run)
        await self._temporal.start(asking, f"{run.node}: {asking.attention}")
        return "asks"

    def _open_without(self, known: set[str]) -> list[RepairRow]:
        """Open repairs that Temporal knows nothing of. One that had not begun is begun by the reconciler."""
        is_open = (col(RepairRow.open_key).is_not(None), RepairRow.state != repairs.OPENING)
        with self._store.read() as session:
            return [row for row in session.exec(select(RepairRow).where(*is_open)) if row.id not in known]

    def _has_ended(self, run: Run) -> bool:
        with self._store.read() as session:
            row = session.get(RepairRow, run.repair_id)
            return row is not None and row.open_key is None

    def _is_ahead(self, run: Run) -> bool:
        """False for a workflow that is older than the store: Temporal was restored as well, from an earlier backup."""
        with self._store.read() as session:
            return rows.last_number(session, run.repair_id) <= run.event_number

    def _write_going_on(self, run: Run) -> str:
        with self._store.write() as session:
            self._guard(session)
            row = rows.row_for(session, run, self._now())
            rows.void_delivered(session, run, self._now())
            if rows.says(row) == (run.state, run.revision, run.disturbed):
                return "as it was"
            rows.follow(row, run)
            session.add(row)
            return "goes on"

    def _write_ended(self, run: Run) -> str:
        """A repair that has ended since the backup: its end is written down, with what it cleared."""
        now = self._now()
        with self._store.write() as session:
            self._guard(session)
            row = rows.row_for(session, run, now)
            if row.open_key is None and is_terminal(State(row.state)):
                return "ended before"
            session.add(rows.end_event(row, run, rows.last_number(session, run.repair_id), now))
            rows.end(row, run, now)
            session.add(row)
            rows.give_up(session, run.repair_id, "it ended before the store was restored")
            if run.state is State.SUCCEEDED:
                repairs.clear_findings(session, run.ref, rows.last_observation(session, run), now)
            return "ended since"

    def _write_asking(self, run: Run) -> Run:
        now = self._now()
        with self._store.write() as session:
            self._guard(session)
            row = rows.row_for(session, run, now)
            rows.give_up(session, run.repair_id, rows.FORGOTTEN)
            asking = rows.asking_run(run, row, rows.last_number(session, run.repair_id), now)
            session.add(event_row(row, asking, now))
            rows.follow(row, asking)
            session.add(row)
            return asking

    async def _strange_marks(self) -> list[str]:
        """Nodes with marks of ours that neither the store nor Temporal knows. They are left as they are, and told."""
        found = []
        for name in await asyncio.to_thread(self._clusters):
            cluster = await asyncio.to_thread(self._adapters.cluster, name)
            marks = {each.node: each.mark_repair_id for each in await cluster.scheduler.facts() if each.mark_repair_id}
            owners = await asyncio.to_thread(self._owners, set(marks.values()))
            found += [f"{name}/{node} ({mark})" for node, mark in marks.items() if mark not in owners]
        return found

    def _clusters(self) -> Sequence[str]:
        with self._store.read() as session:
            return session.exec(select(ClusterRow.name).order_by(col(ClusterRow.name))).all()

    def _owners(self, marks: set[str]) -> set[str]:
        with self._store.read() as session:
            known = set(session.exec(select(RepairRow.id).where(col(RepairRow.id).in_(marks))))
            incidents = {incident_of(mark) for mark in marks}
            open_ones = set(session.exec(select(IncidentRow.id).where(col(IncidentRow.id).in_(incidents))))
        return known | {mark for mark in marks if incident_of(mark) in open_ones}

    async def _tell(self, restore: RestoreRow, told: Counter[str], strange: Sequence[str]) -> None:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(told.items())) or "none"
        lines = [f"restored from a backup of {restore.taken_at:%Y-%m-%d %H:%M:%SZ}; repairs since: {counts}"]
        if strange:
            lines.append(f"marks of repairs that nobody knows, left as they are: {', '.join(strange)}")
        lines.append("Everything is frozen. Look: daytwo repairs list; then: daytwo thaw --reason …")
        await self._notifier.tell("daytwo: the store was restored", "\n".join(map(clean, lines)), urgent=True)

    def _write_settled(self, told: Counter[str], strange: Sequence[str]) -> None:
        now = self._now()
        with self._store.write() as session:
            self._guard(session)
            session.exec(update(RestoreRow).where(col(RestoreRow.settled_at).is_(None)).values(settled_at=now))
            audit.append(
                session, ACTOR, "settled", SUBJECT, data={**told, "unknown_marks": list(strange)[:100]}, now=now
            )
