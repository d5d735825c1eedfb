"""What others did to nodes under repair, from two answers of the scheduler; part of `daytwo.intake.facts`.

An act of ours is told from another's by the ledger: what we wrote is a row of `intents`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import and_, func, or_
from sqlmodel import Session, col, select

from daytwo.domain.boots import spoke_after
from daytwo.domain.policy import Policy, Rivals
from daytwo.domain.rivals import (
    BOOTED,
    FOREIGN_ACT,
    MARKS_LOST,
    RIVAL,
    ForeignAct,
    acts_between,
    has_lost_marks,
    is_whole,
    rival,
)
from daytwo.domain.seams import ActKind, NodeFacts, Ownership
from daytwo.domain.vocabulary import FindingStatus
from daytwo.intake.observations import NODE, Observation
from daytwo.store.tables import ClusterRow, FindingRow, IntentRow, NodeRow, ObservationRow, RepairRow

OF_HANDS: Final = (FOREIGN_ACT, MARKS_LOST, RIVAL)
SOURCE: Final = "scheduler"
LIFTS: Final = frozenset({ActKind.UNDRAIN, ActKind.UNRESERVE})
BOOTS: Final = frozenset({ActKind.REBOOT, ActKind.POWER_CYCLE})
CLOCKS: Final = timedelta(seconds=5)
"""How far apart the clocks of the scheduler and of the plane may be."""


def of_hands(session: Session, row: NodeRow, after: NodeFacts, *, restarted: bool | None) -> list[Observation]:
    """What the new answer tells of others' acts, compared with the one that is stored.

    `restarted`: the scheduler's controller was started again between the two; `None`: nobody knows.
    """
    repair_id = session.exec(select(RepairRow.id).where(RepairRow.open_key == f"{row.cluster}/{row.name}")).first()
    if repair_id is None:
        return []
    before = NodeFacts.model_validate(row.facts) if row.facts else None
    if restarted and _lost(session, before, after, repair_id):
        act = ForeignAct(what="was started again without our marks", by="the scheduler", at=after.at)
        return [_observation(row, MARKS_LOST, act)]
    return _acts(session, row, before, after, repair_id, restarted=restarted) if before else []


def _lost(session: Session, before: NodeFacts | None, after: NodeFacts, repair_id: str) -> bool:
    if before is not None:
        return has_lost_marks(before, after, repair_id)
    return marks_written(session, repair_id) is not None and not is_whole(after, repair_id)


def _acts(
    session: Session, row: NodeRow, before: NodeFacts, after: NodeFacts, repair_id: str, *, restarted: bool | None
) -> list[Observation]:
    acts = [act for act in acts_between(before, after, repair_id) if not _is_ours(session, row, before, act)]
    if _runs_on(session, row, after, repair_id):
        acts = [act for act in acts if act.what != BOOTED]
    told = [act for act in acts if restarted is False or act.what == BOOTED]
    seen = [_observation(row, FOREIGN_ACT, act) for act in told]
    return seen + _rival(session, row, told, after.at)


def _runs_on(session: Session, row: NodeRow, after: NodeFacts, repair_id: str) -> bool:
    """True if the agent speaks on from the boot that was proposed about: a boot time that moves is a clock's."""
    repair, cluster = session.get_one(RepairRow, repair_id), session.get(ClusterRow, row.cluster)
    before = (repair.proposal or {}).get("boot_id")
    one_machine = cluster is not None and (cluster.definition.get("slurm") or {}).get("one_machine")
    if before is None or before != row.boot_id or one_machine:
        return False
    skew = row.clock_skew_seconds
    return spoke_after(after.boot_time, heard_at=row.last_heard_at, clock_skew_seconds=skew)


def ended(facts: NodeFacts, findings: Mapping[str, FindingRow], limits: Rivals) -> list[str]:
    """The findings on others' acts that are over: long enough ago, or the marks are there again."""
    firing = {fault: row for fault, row in findings.items() if row.status == FindingStatus.FIRING}
    old = facts.at - timedelta(seconds=limits.window_seconds)
    over = [fault for fault in (FOREIGN_ACT, RIVAL) if fault in firing and firing[fault].last_received < old]
    whole = MARKS_LOST in firing and facts.ownership in (Ownership.OURS, Ownership.FOREIGN)
    return over + ([MARKS_LOST] if whole else [])


def acts_on(session: Session, cluster: str, node: str, since: datetime) -> list[ForeignAct]:
    """Others' acts on a node of which anybody has heard since then, in their order."""
    theirs = (ObservationRow.cluster == cluster, ObservationRow.node == node, ObservationRow.fault == FOREIGN_ACT)
    firing = (ObservationRow.status == FindingStatus.FIRING, ObservationRow.received_at > since)
    rows = session.exec(select(ObservationRow).where(*theirs, *firing).order_by(col(ObservationRow.id)))
    return [ForeignAct.model_validate(row.detail | {"at": row.seen_at}) for row in rows]


def marks_written(session: Session, repair_id: str) -> datetime | None:
    """When the marks of a repair were written last; `None` where none should stand."""
    newest = select(func.max(IntentRow.updated_at)).where(IntentRow.repair_id == repair_id, IntentRow.state == "proven")
    written: datetime | None = session.exec(newest.where(IntentRow.kind == ActKind.DRAIN)).one()
    lifted: datetime | None = session.exec(newest.where(IntentRow.kind == ActKind.UNDRAIN)).one()
    return written if written and (lifted is None or lifted < written) else None


def limits_of(session: Session, cluster: str) -> Rivals:
    """The policy's values on rival healers."""
    row = session.get(ClusterRow, cluster)
    return Policy.model_validate(row.definition.get("policy", {})).rivals if row else Rivals()


def _is_ours(session: Session, row: NodeRow, before: NodeFacts, act: ForeignAct) -> bool:
    """True for what we have written: a lift since the stored answer, or an order to boot since the boot before.

    Whoever sent it may have died before it could write that down: then it was sent before its deadline, or not at all.
    """
    booted = act.what == BOOTED
    since = ((before.boot_time or before.at) if booted else before.at) - CLOCKS
    sent = or_(col(IntentRow.sent_at) > since, and_(col(IntentRow.sent_at).is_(None), col(IntentRow.deadline) > since))
    mine = (IntentRow.cluster == row.cluster, IntentRow.node == row.name, sent)
    kinds = BOOTS if booted else LIFTS
    return session.exec(select(IntentRow.id).where(*mine, col(IntentRow.kind).in_(kinds))).first() is not None


def _rival(session: Session, row: NodeRow, fresh: Sequence[ForeignAct], now: datetime) -> list[Observation]:
    if not fresh:
        return []
    limits = limits_of(session, row.cluster)
    known = acts_on(session, row.cluster, row.name, now - timedelta(seconds=limits.window_seconds))
    text = rival([*known, *fresh], limits, now)
    if not text:
        return []
    names = ", ".join(sorted({act.by for act in (*known, *fresh) if act.by})) or "somebody"
    return [_seen(row, RIVAL, {"by": names}, (text,), now)]


def _observation(row: NodeRow, fault: str, act: ForeignAct) -> Observation:
    detail = {"what": act.what, "by": act.by, "reason": act.reason}
    return _seen(row, fault, detail, (str(act),), act.at)


def _seen(row: NodeRow, fault: str, detail: dict[str, str], evidence: tuple[str, ...], at: datetime) -> Observation:
    return Observation(
        cluster=row.cluster,
        node=row.name,
        fault=fault,
        entity=NODE,
        status=FindingStatus.FIRING,
        first_seen=at,
        last_seen=at,
        source=SOURCE,
        evidence=evidence,
        detail=detail,
    )
