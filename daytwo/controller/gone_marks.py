"""Marks of contained nodes that are there no more: did the scheduler lose them, or did a person take them off?

operations.md, rule 20. Part of the reconciler, for repairs that are proposed; later states ask by themselves. After a
restart of the scheduler's controller they are written again, and people are told. Otherwise a person did it, and is
not overruled: the repair says so, somebody is asked, and nothing is written on the node until they decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import func
from sqlmodel import Session, select

from daytwo import repairs
from daytwo.adapters import Cluster
from daytwo.controller.marks import Marks, carries
from daytwo.domain.message import clean
from daytwo.domain.seams import ActKind, NodeFacts, Notifier
from daytwo.domain.situation import OpenRepair, Situation
from daytwo.domain.vocabulary import Mark
from daytwo.intents import Guard
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, IntentRow, RepairRow

ASKED = "marks-gone"


class GoneMarks:
    """Looks at the marks of one repair a call."""

    def __init__(
        self, store: Store, marks: Marks, notifier: Notifier, *, guard: Guard, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._marks = marks
        self._notifier = notifier
        self._guard = guard
        self._now = now

    async def see(self, cluster: Cluster, situation: Situation, opened: OpenRepair) -> None:
        """Do what is to be done where marks are gone. Raises `TryAgain` where that cannot be told."""
        node, repair = situation.node, opened.repair_id
        if situation.facts is None or carries(situation.facts, repair):
            return
        # What is stored may have been read before the marks were written.
        facts = await cluster.scheduler.node(node)
        if carries(facts, repair):
            return
        written = await asyncio.to_thread(self._written_at, repair)
        started = await cluster.scheduler.started_at()
        if written is not None and started > written:
            await self._write_again(cluster, situation, repair, started)
        else:
            await self._ask(situation, repair, facts)

    async def _write_again(self, cluster: Cluster, situation: Situation, repair: str, started: datetime) -> None:
        node, when = situation.node, f"{started:%Y-%m-%d %H:%M:%SZ}"
        mark = Mark(repair_id=repair, text="contained, written again after a restart of the scheduler")
        await self._marks.contain(cluster, node, mark, again=f"-after-{started:%Y%m%d%H%M%S}")
        text = f"{node}: the scheduler was started at {when} without our marks; they are there again ({repair})"
        await self._notifier.tell(f"{clean(node)}: contained again", clean(text), urgent=False)

    async def _ask(self, situation: Situation, repair: str, facts: NodeFacts) -> None:
        text = (
            f"somebody has taken our marks off {situation.node} ({'+'.join(facts.states)}, {facts.ownership}): it may "
            f"take new jobs, and nothing is written on it until you decide"
        )
        if not await asyncio.to_thread(self._is_news, repair, text):
            return
        look = f"Look: daytwo repairs show {repair}"
        await self._notifier.tell(f"{clean(situation.node)}: our marks are gone", f"{clean(text)}\n{look}", urgent=True)
        await asyncio.to_thread(self._note, repair, text)

    def _written_at(self, repair: str) -> datetime | None:
        drained = (IntentRow.repair_id == repair, IntentRow.kind == ActKind.DRAIN, IntentRow.state == "proven")
        with self._store.read() as session:
            return session.exec(select(func.max(IntentRow.updated_at)).where(*drained)).one()

    def _is_news(self, repair: str, text: str) -> bool:
        """False once somebody was asked; the words on the repair stay until its next event."""
        with self._store.read() as session:
            asked = _was_asked(session, repair)
        if asked:
            self._say(repair, text)
        return not asked

    def _note(self, repair: str, text: str) -> None:
        self._say(repair, text)
        with self._store.write() as session:
            self._guard(session)
            audit.append(session, actor="daytwo", act=ASKED, subject=repair, data={"text": text[:200]}, now=self._now())

    def _say(self, repair: str, text: str) -> None:
        with self._store.read() as session:
            if repairs.waiting_for(session, repair) == text[: repairs.LONGEST_WAIT]:
                return
        with self._store.write() as session:
            self._guard(session)
            session.get(RepairRow, repair, with_for_update=True)
            repairs.note_waiting(session, repair, text)


def _was_asked(session: Session, repair: str) -> bool:
    asked = (AuditRow.subject == repair, AuditRow.act == ASKED)
    return session.exec(select(AuditRow.number).where(*asked)).first() is not None
