"""What a store must be told that was put back to an earlier moment: the world has gone on without it.

`daytwo.store.backups` calls it in the transaction that ends a restore; the ledger and the controller ask whether it
has been settled (`daytwo.controller.settling`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, col, func, select, update

from daytwo.store import audit
from daytwo.store.tables import AuditRow, FreezeRow, IntentRow, LeaseRow, NodeRow, RestoreRow

STREAMS: Final = 1_000_000
"""More streams than a node's agent can have begun since the backup: whatever it numbers in now is not the store's."""
EPOCHS: Final = 1_000
"""More holders than a lease can have had since the backup: what one of them still writes changes nothing."""
SUBJECT: Final = "store"
BACKED_UP: Final = "backup"
ACTOR: Final = "restore"
UNSETTLED: Final = "the store was restored, and its open repairs are not compared with Temporal yet"


def taken_at(session: Session) -> datetime | None:
    """When this store was copied, as the copy itself says; that of the last thing it knows where it does not."""
    copied = select(func.max(AuditRow.at)).where(AuditRow.act == BACKED_UP, AuditRow.subject == SUBJECT)
    last = select(AuditRow).order_by(col(AuditRow.number).desc()).limit(1)
    newest = session.exec(last).first()
    if newest is None or newest.act == BACKED_UP:
        return newest.at if newest else None
    return max(filter(None, (newest.at, session.exec(copied).one())))


def unsettle(
    session: Session, actor: str, *, taken: datetime, replaced: audit.AuditReport | None, now: datetime
) -> None:
    """Write into a restored store what makes everything be looked at again, and nothing be done until somebody has.

    `replaced` is the audit chain of the store that was there before, where it could be read.
    """
    session.add(RestoreRow(taken_at=taken, at=now))
    _doubt_intents(session, now)
    _forget_what_was_read(session, now)
    leases = update(LeaseRow).values(epoch=LeaseRow.epoch + EPOCHS, expires_at=now - timedelta(seconds=1))
    session.exec(leases)
    reason = f"restored from a backup of {taken:%Y-%m-%d %H:%M:%SZ}: look at `daytwo repairs list`, then thaw"
    session.add(FreezeRow(scope="*", reason=reason, actor=ACTOR, at=now))
    audit.append(session, actor, "restore", SUBJECT, data=_told(taken, replaced), now=now)
    audit.append(session, ACTOR, "freeze", "*", data={"reason": reason}, now=now)


def unsettled(session: Session) -> RestoreRow | None:
    """The restore whose open repairs have not been compared with Temporal yet."""
    found = select(RestoreRow).where(col(RestoreRow.settled_at).is_(None)).order_by(col(RestoreRow.id).desc())
    return session.exec(found.limit(1)).first()


def _doubt_intents(session: Session, now: datetime) -> None:
    """What was intended may have been sent since: from now on the target is asked before anything is sent again."""
    intended = (col(IntentRow.state) == "intended", col(IntentRow.open_node).is_not(None))
    sent = {"state": "sending", "tries": IntentRow.tries + 1, "deadline": now, "updated_at": now}
    session.exec(update(IntentRow).where(*intended).values(sent))


def _forget_what_was_read(session: Session, now: datetime) -> None:
    """Nodes are asked anew: a stream that no agent uses makes each say again what it sees, and all are due."""
    asked = {"stream": NodeRow.stream + STREAMS, "sequence": 0, "checks_digest": None}
    session.exec(update(NodeRow).values({**asked, "facts": None, "facts_at": now, "due": NodeRow.due + 1}))


def _told(taken: datetime, replaced: audit.AuditReport | None) -> dict[str, object]:
    before = {"replaced_count": replaced.count, "replaced_head": replaced.head} if replaced else {}
    return {"taken_at": taken.isoformat(), **before}
