"""The ledger of acts: every write to a scheduler or to hardware is a row here before it is a write.

    intended → sending (try, deadline) → sent → proven | failed

Each step is a compare-and-set. A write happens in a child that has armed an alarm before the last look
(`daytwo.sender`), so that nobody sends late. Whoever finds `sending` or `sent` asks the target whether it happened.
Called by activities (on behalf of a repair) and by the reconciler (containment, and marks that nothing stands behind).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select, update

from daytwo import stops
from daytwo.domain.errors import Failed, Foreign, NotYet, Unclear
from daytwo.domain.seams import Act, ActKind, AlreadyDone, Look, NotOurs, Outcome, Program, Send, Target
from daytwo.sending import Sender, Sent
from daytwo.settings import seconds
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow

log = logging.getLogger(__name__)

SEND_SECONDS: Final = seconds("DAYTWO_SEND_SECONDS", 10.0)
"""From the last look to the alarm. slurmctld answers an update in milliseconds, a busy one in a few seconds."""
MAX_TRIES: Final = 3
"""Sends of one intent. Each later one needs positive evidence that the one before did not happen."""
LOOK_AGAIN_SECONDS: Final = 1.0
GIVEN_UP: Final = "given-up"

Guard = Callable[[Session], None]


class Ledger:
    """Carries acts out, each at most once. `targets` are the drivers by name."""

    def __init__(
        self, store: Store, targets: Mapping[str, Target], *, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._store = store
        self._targets = targets
        self._now = clock or (lambda: datetime.now(UTC))

    async def carry_out(
        self, key: str, driver: str, act: Act, *, guard: Guard | None = None, overtakes: bool = True
    ) -> Look:
        """Do what is left of this act and return its proof.

        Call it again with the same `key` until it returns. Raises `NotYet` while the act is under way, frozen, or
        behind another act of the node; `Foreign`, `Unclear` or `Failed` when a person is needed. One that `overtakes`
        makes the repair give up what it intended before and has not sent.
        """
        row = await asyncio.to_thread(self._intend, key, driver, act, guard)
        if row is None:
            await self._resolve_another(act, guard, overtakes)
            raise NotYet(f"{act.node}: the act before this one is resolved only now", 0.1)
        return await self._go_on(row, guard)

    async def _go_on(self, row: IntentRow, guard: Guard | None) -> Look:
        if row.state == "proven":
            return Look(outcome=Outcome.DONE, proof=row.proof)
        if row.state == "failed":
            raise _failure(row)
        if row.state == "intended":
            await self._send(row, guard)
        return await self._judge(row.id)

    async def _resolve_another(self, act: Act, guard: Guard | None, overtakes: bool) -> None:
        """Go on with what is unresolved on the node, if it is this repair's: nobody else may ask for it any more.

        So it is with what a repair has left that is over. What was not sent of it never will be.
        """
        row = await asyncio.to_thread(self._in_the_way, act)
        if row is None:
            return
        is_over = row.repair_id != act.mark.repair_id and await asyncio.to_thread(self._is_over, row)
        if row.repair_id != act.mark.repair_id and not is_over:
            raise NotYet(f"{act.node}: an act of repair {row.repair_id} is not resolved yet", LOOK_AGAIN_SECONDS)
        overtaken = row.state == "intended" and (is_over or stops.is_overtaken(ActKind(row.kind), act.kind))
        if overtaken and not is_over and not overtakes:
            raise NotYet(f"{act.node}: its repair is about to {row.kind}", LOOK_AGAIN_SECONDS)
        if overtaken:
            await asyncio.to_thread(self._fail, row, GIVEN_UP, f"not sent: {act.kind} came instead")
        else:
            await self._go_on(row, guard)

    def _is_over(self, row: IntentRow) -> bool:
        with self._store.read() as session:
            return stops.is_over(session, Act.model_validate(row.act))

    def _in_the_way(self, act: Act) -> IntentRow | None:
        with self._store.read() as session:
            return session.exec(select(IntentRow).where(IntentRow.open_node == f"{act.cluster}/{act.node}")).first()

    async def carry_on(self, repair_id: str) -> None:
        """Resolve what is unresolved of a repair, also where its target is gone by now. Raises as `carry_out` does."""
        for row in await asyncio.to_thread(self._unresolved, repair_id):
            await self._go_on(row, None)

    def _unresolved(self, repair_id: str) -> list[IntentRow]:
        with self._store.read() as session:
            unresolved = (col(IntentRow.repair_id) == repair_id, col(IntentRow.open_node).is_not(None))
            return list(session.exec(select(IntentRow).where(*unresolved)))

    def _intend(self, key: str, driver: str, act: Act, guard: Guard | None) -> IntentRow | None:
        """The row of this act; `None` while another act of the node is unresolved."""
        try:
            with self._store.write() as session:
                if guard:
                    guard(session)
                row = session.get(IntentRow, key)
                if row is None:
                    row = _new_row(key, driver, act, self._now())
                    session.add(row)
                    session.flush()
                return row
        except IntegrityError:
            return None

    async def _send(self, row: IntentRow, guard: Guard | None) -> None:
        act, target = Act.model_validate(row.act), self._targets[row.driver]
        prepared = await target.prepare(act)
        if isinstance(prepared, AlreadyDone):
            return await asyncio.to_thread(self._prove, row.id, Look(outcome=Outcome.DONE, proof=prepared.proof))
        if isinstance(prepared, NotOurs):
            await asyncio.to_thread(self._fail, row, "foreign", prepared.found)
            raise Foreign(f"{act.node}: carries another's mark, {prepared.found!r}; it is left alone")
        return await self._send_through_child(row.id, act, prepared, guard)

    async def _send_through_child(self, key: str, act: Act, send: Send, guard: Guard | None) -> None:
        limit = send.seconds if isinstance(send, Program) else SEND_SECONDS
        async with Sender(send, limit) as child:
            problem = await asyncio.to_thread(self._last_look, key, act, guard, limit)
            if problem:
                raise NotYet(problem, 5.0)
            sent = await child.go()
        await asyncio.to_thread(self._after_send, key, sent)

    def _last_look(self, key: str, act: Act, guard: Guard | None, limit: float) -> str:
        """In one transaction: nothing stops this act, and it is `sending` from now on. Returns what stops it, or ""."""
        with self._store.write() as session:
            if guard:
                guard(session)
            now = self._now()
            stop = stops.why_not(session, act)
            if stop:
                if stops.is_over(session, act):  # nobody may ever send it, and it must not lock the node
                    _move(session, key, ("intended",), _given_up(stop, now))
                return stop
            values = {
                "state": "sending",
                "tries": IntentRow.tries + 1,
                "deadline": now + timedelta(seconds=limit),
            }
            if not _move(session, key, ("intended",), {**values, "updated_at": now}):
                return f"{act.node}: somebody else is sending {act.kind}"
            audit.append(
                session, actor="daytwo", act=f"send-{act.kind}", subject=act.mark.repair_id, data=_told(act), now=now
            )
            return ""

    def _after_send(self, key: str, sent: Sent) -> None:
        now = self._now()
        with self._store.write() as session:
            if sent.ok:
                _move(session, key, ("sending",), {"state": "sent", "sent_at": now, "updated_at": now})
            else:
                log.warning("%s: %s", key, sent.error)
                _move(session, key, ("sending",), {"error": sent.error, "updated_at": now})

    async def _judge(self, key: str) -> Look:
        row = await asyncio.to_thread(self._row, key)
        if row.state == "proven":
            return Look(outcome=Outcome.DONE, proof=row.proof)
        act, target = Act.model_validate(row.act), self._targets[row.driver]
        look = await target.look(act)
        if look.outcome is Outcome.DONE:
            await asyncio.to_thread(self._prove, key, look)
            return look
        if look.outcome is Outcome.PENDING or not self._settled(row, target):
            if look.progress and look.progress != row.proof:
                await asyncio.to_thread(self._moved, row, look.progress)
            raise NotYet(f"{act.node}: {act.kind} is under way", LOOK_AGAIN_SECONDS)
        await asyncio.to_thread(self._after_settling, row, look)
        raise NotYet(f"{act.node}: {act.kind} did not happen; trying again", LOOK_AGAIN_SECONDS)

    def _settled(self, row: IntentRow, target: Target) -> bool:
        # A refusal (exit status, error text) still settles: the target may have done part of it.
        return row.deadline is not None and self._now() > row.deadline + timedelta(seconds=target.settle_seconds)

    def _after_settling(self, row: IntentRow, look: Look) -> None:
        if look.outcome is Outcome.UNCLEAR:
            self._fail(row, "unclear", look.proof or row.error)
            raise Unclear(
                f"{row.node}: it cannot be told whether {row.kind} happened ({look.proof}); a person must look"
            )
        if row.tries >= MAX_TRIES:
            self._fail(row, "failed", row.error or look.proof)
            raise Failed(f"{row.node}: {row.kind} did not happen in {row.tries} tries: {row.error or look.proof}")
        with self._store.write() as session:
            _move_try(session, row, ("sending", "sent"), {"state": "intended", "updated_at": self._now()})

    def _row(self, key: str) -> IntentRow:
        with self._store.read() as session:
            return session.exec(select(IntentRow).where(IntentRow.id == key)).one()

    def _moved(self, row: IntentRow, progress: str) -> None:
        """Keep the stage that was reached; `updated_at` tells when."""
        with self._store.write() as session:
            _move_try(session, row, ("sending", "sent"), {"proof": progress, "updated_at": self._now()})

    def _prove(self, key: str, look: Look) -> None:
        now = self._now()
        values = {"state": "proven", "open_node": None, "proof": look.proof, "proof_type": look.proof_type}
        with self._store.write() as session:
            if _move(session, key, ("intended", "sending", "sent"), {**values, "updated_at": now}):
                row = session.get_one(IntentRow, key)
                audit.append(
                    session,
                    actor="daytwo",
                    act="proven",
                    subject=row.repair_id,
                    data={"intent": key, "proof": look.proof},
                    now=now,
                )

    def _fail(self, row: IntentRow, how: str, why: str) -> None:
        values = {
            "state": "failed",
            "open_node": None,
            "proof_type": how,
            "error": why[:500],
            "updated_at": self._now(),
        }
        with self._store.write() as session:
            _move_try(session, row, ("intended", "sending", "sent"), values)

    def give_up(self, repair_id: str, why: str) -> None:
        """Close what is unresolved of a repair that goes to a person, so that the person's act is not locked out."""
        with self._store.write() as session:
            give_up_in(session, repair_id, why)


def give_up_in(session: Session, repair_id: str, why: str) -> None:
    """The same, in the caller's write transaction."""
    unresolved = (col(IntentRow.repair_id) == repair_id, col(IntentRow.open_node).is_not(None))
    values = {"state": "failed", "open_node": None, "proof_type": GIVEN_UP, "error": why[:500]}
    session.exec(update(IntentRow).where(*unresolved).values(values))


def _new_row(key: str, driver: str, act: Act, now: datetime) -> IntentRow:
    return IntentRow(
        id=key,
        repair_id=act.mark.repair_id,
        cluster=act.cluster,
        node=act.node,
        open_node=f"{act.cluster}/{act.node}",
        driver=driver,
        kind=act.kind,
        target=act.target,
        act=act.model_dump(mode="json"),
        created_at=now,
        updated_at=now,
    )


def _move(session: Session, key: str, states: tuple[str, ...], values: Mapping[str, object]) -> bool:
    return _move_where(session, values, col(IntentRow.id) == key, col(IntentRow.state).in_(states))


def _move_try(session: Session, row: IntentRow, states: tuple[str, ...], values: Mapping[str, object]) -> bool:
    """Move on from the try that was looked at: meanwhile another may have sent the next one."""
    this = (col(IntentRow.id) == row.id, col(IntentRow.tries) == row.tries)
    return _move_where(session, values, *this, col(IntentRow.state).in_(states))


def _move_where(session: Session, values: Mapping[str, object], *where: ColumnElement[bool]) -> bool:
    return session.exec(update(IntentRow).where(*where).values(values)).rowcount == 1


def _given_up(why: str, now: datetime) -> dict[str, object]:
    return {"state": "failed", "open_node": None, "proof_type": GIVEN_UP, "error": why[:500], "updated_at": now}


def _told(act: Act) -> dict[str, object]:
    return {"node": act.node, "target": act.target, "baseline": act.baseline, "reason": act.mark.reason}


def _failure(row: IntentRow) -> Exception:
    kinds = {"foreign": Foreign, "unclear": Unclear}
    return kinds.get(row.proof_type, Failed)(f"{row.node}: {row.kind}: {row.error}")
