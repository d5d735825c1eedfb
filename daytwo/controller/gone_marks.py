"""Marks that are there no more: did the scheduler lose them, or did a person take them off?

operations.md, rule 20. Part of the reconciler, for repairs that wait with their marks on a node; the states that work
on it write theirs again by themselves. After a restart of the scheduler's controller they are written again, and people
are told; so they are where Slurm wrote its own reason over ours. Otherwise a person did it, and is not overruled: the
repair says so, somebody is asked, and nothing is written on the node until they decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from sqlmodel import Session, col, select

from daytwo import repairs
from daytwo.adapters import Cluster
from daytwo.controller.marks import Marks, carries
from daytwo.domain.errors import TryAgain
from daytwo.domain.message import clean
from daytwo.domain.rivals import MARKS_LOST
from daytwo.domain.seams import NodeFacts, Notifier
from daytwo.domain.situation import OpenRepair, Situation
from daytwo.domain.vocabulary import FindingStatus, Mark, State
from daytwo.intake.hands import CLOCKS, marks_written
from daytwo.intents import Guard
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow, IntentRow, RepairRow

ASKED = "marks-gone"
MOST_RECORDED: Final = 5
"""Lines of the scheduler's accounting in one notice."""
WATCHED: Final = frozenset({State.PROPOSED, State.WAITING, State.DRAINING, State.HELD, State.NEEDS_HELP})
"""States of a repair in which its marks stand, if they were written, and nothing else looks after them."""


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
        if opened.state not in WATCHED or situation.facts is None or carries(situation.facts, repair):
            return
        written, under_way = await asyncio.to_thread(self._written, node, repair)
        if written is None or under_way:
            return
        # What is stored may have been read before the marks were written.
        facts = await cluster.scheduler.node(node)
        if carries(facts, repair):
            return
        if why := lost_by_scheduler(situation, facts, repair):
            await self._write_again(cluster, situation, repair, why)
        else:
            await self._ask(cluster, situation, repair, facts, since=written)

    async def _write_again(self, cluster: Cluster, situation: Situation, repair: str, why: str) -> None:
        node, now = situation.node, self._now()
        mark = Mark(repair_id=repair, text=f"written again: {why}")
        await self._marks.contain(cluster, node, mark, again=f"-again-{now:%Y%m%d%H%M%S}", while_in=WATCHED)
        text = f"{node}: {why}, and our marks were gone; they are there again ({repair})"
        await self._notifier.tell(f"{clean(node)}: contained again", clean(text), urgent=False)

    async def _ask(
        self, cluster: Cluster, situation: Situation, repair: str, facts: NodeFacts, *, since: datetime
    ) -> None:
        text = (
            f"somebody has taken our marks off {situation.node} ({'+'.join(facts.states)}, {facts.ownership}): it may "
            f"take new jobs, and nothing is written on it until you decide"
        )
        if not await asyncio.to_thread(self._is_news, repair, text):
            return
        look = f"{await _accounts(cluster, situation.node, since)}Look: daytwo repairs show {repair}"
        await self._notifier.tell(f"{clean(situation.node)}: our marks are gone", f"{clean(text)}\n{look}", urgent=True)
        await asyncio.to_thread(self._note, repair, text)

    def _written(self, node: str, repair: str) -> tuple[datetime | None, bool]:
        """When the marks that should stand were written, and whether anything is being written on the node now."""
        under_way = (IntentRow.node == node, col(IntentRow.open_node).is_not(None))
        with self._store.read() as session:
            row = session.exec(select(IntentRow.id).where(*under_way)).first()
            return marks_written(session, repair), row is not None

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


async def _accounts(cluster: Cluster, node: str, since: datetime) -> str:
    """What the scheduler's accounting says of the node since then, a line each."""
    try:
        found = await cluster.scheduler.recorded(node, since - CLOCKS)
    except TryAgain as error:
        return f"Its accounting cannot be read: {clean(str(error))}\n"
    return "".join(f"Recorded: {clean(str(each))}\n" for each in found[-MOST_RECORDED:])


def lost_by_scheduler(situation: Situation, facts: NodeFacts, repair: str) -> str:
    """Say how the scheduler itself has lost the marks of a repair; empty if a person may have taken them off."""
    firing = {finding.fault for finding in situation.findings if finding.status is FindingStatus.FIRING}
    if MARKS_LOST in firing and facts.drained_by != "person":
        return "the scheduler was started again without our marks"
    if facts.mark_repair_id == repair and facts.drained_by == "scheduler" and "DRAIN" in facts.states:
        return "the scheduler wrote its own reason over ours"
    return ""


def _was_asked(session: Session, repair: str) -> bool:
    asked = (AuditRow.subject == repair, AuditRow.act == ASKED)
    return session.exec(select(AuditRow.number).where(*asked)).first() is not None
