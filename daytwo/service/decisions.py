"""The one way a decision is made: a row first, delivered afterwards, by whatever gets there first.

The service's API, the activity that writes down what came in through Temporal, and automatic approval all call
`decide`. Whether the asker *may* is judged later, by the workflow's `authorise`, with the rules as they are then.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from pydantic import Field
from sqlmodel import Session, select

from daytwo.domain.errors import BadInput, NotFound, Stale
from daytwo.domain.ids import new_id
from daytwo.domain.vocabulary import Action, Channel, Decision, DecisionKind, DecisionStatus, Frozen, Moment
from daytwo.repairs import touch
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, RepairRow

log = logging.getLogger(__name__)

NEEDS_REASON = frozenset({DecisionKind.DISMISS, DecisionKind.REMOVE, DecisionKind.HAND_OVER})
MAY_NAME_ACTION = frozenset({DecisionKind.APPROVE, DecisionKind.RETRY})
LOOK_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, as the channel established it; `verified` is false for a name that was only claimed."""

    actor: str
    channel: Channel
    verified: bool


class DecisionRequest(Frozen):
    """What is asked. `request_id` is the asker's own: sent twice, it is one decision. Only dismiss may snooze.

    Without a `moment` an approval is for the one that is proposed.
    """

    request_id: str = Field(min_length=8, max_length=128)
    repair_id: str
    revision: int = Field(ge=0)
    kind: DecisionKind
    action: Action | None = None
    moment: Moment | None = None
    reason: str = Field(default="", max_length=2000)
    snooze_seconds: int | None = Field(default=None, ge=0, le=90 * 24 * 3600)


class Delivery(Protocol):
    """Hands a decision to its repair. It may fail: the reconciler delivers what was not delivered."""

    async def deliver(self, decision_id: str) -> None:
        """Tell the repair that this row exists."""


def decide(store: Store, asker: Identity, request: DecisionRequest, now: datetime) -> Decision:
    """Write the decision down and mark its node due; the same request again gives the same row.

    Raises `BadInput` (a reason is missing), `NotFound` (no such repair) and `Stale` (closed, another revision, or the
    request id was used for something else).
    """
    _check_request(request)
    return store.change(lambda session: as_decision(_decide(session, asker, request, now)))


def _decide(session: Session, asker: Identity, request: DecisionRequest, now: datetime) -> DecisionRow:
    # Locked first, so that revision and row are one moment where writers are not alone.
    repair = session.get(RepairRow, request.repair_id, with_for_update=True)
    row = _already_made(session, asker, request)
    return row or _record(session, asker, request, _open_repair(repair, request), now=now)


def as_decision(row: DecisionRow) -> Decision:
    """The row as the workflow and people see it."""
    return Decision.model_validate(row.model_dump(exclude={"ended_at"}))


async def deliver_soon(delivery: Delivery, decision_id: str) -> None:
    """Try once to deliver. Never raises: a decision that stays undelivered is the reconciler's."""
    try:
        await delivery.deliver(decision_id)
    except Exception as error:
        log.warning("decision %s is not delivered yet, the reconciler will: %s", decision_id, error)


async def wait_for(store: Store, decision_id: str, seconds: float) -> Decision:
    """Return the decision once it has ended, or as it stands after `seconds`. Raises `NotFound`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        decision = await asyncio.to_thread(load, store, decision_id)
        if decision.status is not DecisionStatus.PENDING or loop.time() >= end:
            return decision
        await asyncio.sleep(min(LOOK_SECONDS, max(0.0, end - loop.time())))


def load(store: Store, decision_id: str) -> Decision:
    """One decision. Raises `NotFound`."""
    with store.read() as session:
        row = session.get(DecisionRow, decision_id)
    if row is None:
        raise NotFound(f"there is no decision {decision_id!r}")
    return as_decision(row)


def _check_request(request: DecisionRequest) -> None:
    another_action = request.kind is DecisionKind.RETRY and request.action is not None
    if (request.kind in NEEDS_REASON or another_action) and not request.reason.strip():
        raise BadInput(
            f"reason: found nothing; to {request.kind.value} {'another way ' if another_action else ''}"
            "needs a sentence that says why"
        )
    if request.action is not None and request.kind not in MAY_NAME_ACTION:
        allowed = " and ".join(sorted(MAY_NAME_ACTION))
        raise BadInput(f"action: found {request.action.value!r} with {request.kind.value}; allowed with {allowed} only")
    if request.snooze_seconds is not None and request.kind is not DecisionKind.DISMISS:
        raise BadInput(
            f"snooze_seconds: found {request.snooze_seconds} with {request.kind.value}; allowed with dismiss only"
        )


def _already_made(session: Session, asker: Identity, request: DecisionRequest) -> DecisionRow | None:
    row = session.exec(select(DecisionRow).where(DecisionRow.request_id == request.request_id)).one_or_none()
    if row is None:
        return None
    content = _content(asker, request)
    if request.moment is None:
        del content["moment"]
    if {name: getattr(row, name) for name in content} != content:
        raise Stale(
            f"request_id: found {request.request_id!r}, which was already used for decision {row.id} "
            f"({row.kind} {row.repair_id} revision {row.revision}); allowed is the very same decision, or a new id",
            why="One request id is one decision. Nothing new was done.",
            following=f"daytwo repairs show {row.repair_id}",
        )
    return row


def _open_repair(repair: RepairRow | None, request: DecisionRequest) -> RepairRow:
    """The repair, if it takes a decision about this revision."""
    if repair is None:
        raise NotFound(f"there is no repair {request.repair_id!r}")
    if repair.open_key is None:
        raise Stale(
            f"repair {repair.id} is over: {repair.state}{f' ({repair.outcome})' if repair.outcome else ''}",
            why="A repair that has ended takes no decision. Nothing was done.",
            following=f"daytwo repairs list --node {repair.cluster}/{repair.node}",
        )
    now = f"revision {repair.revision}, {repair.state}, asks for {repair.action or 'nothing yet'}"
    if request.revision > repair.revision:
        raise NotFound(
            f"there is no revision {request.revision} of repair {repair.id}: it is at {now}",
            why=f"The newest revision is {repair.revision}; only the one that stands can be decided on. "
            "Nothing was done.",
            following=f"daytwo repairs show {repair.id}",
        )
    if repair.revision != request.revision:
        raise Stale(
            f"repair {repair.id} has changed since revision {request.revision}: it is at {now}",
            why=f"Only what was read is decided on, and what stands is revision {repair.revision}. Nothing was done.",
            following=f"daytwo repairs show {repair.id}",
        )
    _check_action(repair, request)
    return repair


def _check_action(repair: RepairRow, request: DecisionRequest) -> None:
    """Raise `BadInput` for the approval of another action than the proposed one that does not say why."""
    proposed = (repair.proposal or {}).get("action")
    other = request.action is not None and request.action.value != proposed
    if request.kind is DecisionKind.APPROVE and request.action and other and not request.reason.strip():
        raise BadInput(
            f"reason: found nothing; to approve {request.action.value} where {proposed or 'nothing'} is proposed "
            "needs a sentence that says why"
        )


def _record(
    session: Session, asker: Identity, request: DecisionRequest, repair: RepairRow, *, now: datetime
) -> DecisionRow:
    moment = request.moment or (proposed_moment(repair) if request.kind is DecisionKind.APPROVE else Moment.NOW)
    row = DecisionRow(id=new_id("d", now), at=now, **_content(asker, request) | {"moment": moment.value})
    session.add(row)
    touch(session, repair.cluster, repair.node)
    data = {"decision": row.id, "revision": row.revision, "action": row.action, "reason": row.reason}
    audit.append(session, asker.actor, row.kind, repair.id, data=data | {"channel": row.channel}, now=now)
    return row


def proposed_moment(repair: RepairRow) -> Moment:
    """When the proposal that stands would interrupt work."""
    return Moment((repair.proposal or {}).get("moment", Moment.NOW))


def _content(asker: Identity, request: DecisionRequest) -> dict[str, Any]:
    asked = request.model_dump(mode="json")
    return asked | {"actor": asker.actor, "channel": asker.channel.value, "verified": asker.verified}
