"""What observations make of findings: the fold. Called by `daytwo.intake.observations`, inside its transaction.

A finding is what its observations amount to, taken in the order in which the node made them, and from the last one
that a repair judged. In order, one observation is one `step`; one that comes late has the finding folded anew, so that
the same observations give the same finding however often and in whatever order they come.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import func
from sqlmodel import Session, col, select

from daytwo.domain.flapping import flaps, may_flap, told, with_turn
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import Clears, FindingStatus
from daytwo.faults.catalogue import catalogue
from daytwo.store.tables import ClusterRow, FindingRow, NodeRow, ObservationRow
from daytwo.wire import MAX_EVIDENCE_LINES

MAX_REFOLDED: Final = 200
"""Observations that are looked at again for one that comes late; a node could make us read without end."""

MAX_FIRING: Final = 500
"""Findings that one node may have firing: what it invents beyond them is recorded, and changes nothing."""

MAX_KNOWN: Final = 5_000
"""Findings that one node may have in all: those that have ended are read with each look, too."""

Place = tuple[int, int]
_COPIED: Final = (
    "status",
    "count",
    "source",
    "boot_id",
    "first_seen",
    "last_seen",
    "last_received",
    "cleared_at",
    "cleared_by",
    "last_stream",
    "last_sequence",
    "evidence",
    "detail",
    "turns",
    "quiet_since",
)


class Effect(StrEnum):
    """What an observation did: it made a finding fire or counted it up, cleared it, was only recorded, or was known."""

    FIRED = "fired"
    COUNTED = "counted"
    CLEARED = "cleared"
    RECORDED = "recorded"
    DUPLICATE = "duplicate"


class NodeFindings:
    """The findings of one node, inside one transaction. `node` is `None` for what is about a whole cluster.

    `faults` and `entities` are those that are going to be applied: only their findings are read.
    """

    def __init__(
        self, session: Session, cluster: str, node: NodeRow | None, *, faults: set[str], entities: set[str]
    ) -> None:
        self._session = session
        self._cluster = cluster
        self._node = node.name if node else ""
        self._boot_id = node.boot_id if node else None
        named = (col(FindingRow.fault).in_(faults), col(FindingRow.entity).in_(entities))
        rows = session.exec(select(FindingRow).where(*self._mine(), *named))
        self._rows = {(row.fault, row.entity): row for row in rows}
        self._judged_up_to = session.exec(select(func.max(FindingRow.judged_up_to)).where(*self._mine())).one() or 0
        self._judged_boots: dict[str, bool] = {}
        self._policy: Policy | None = None

    def _mine(self) -> tuple[Any, Any]:
        return FindingRow.cluster == self._cluster, FindingRow.node == self._node

    def apply(self, seen: ObservationRow) -> Effect:
        """Let one observation, already a row with an id, change its finding."""
        finding = self._rows.get((seen.fault, seen.entity))
        if self._is_judged(seen, finding):
            return Effect.RECORDED
        if finding is None or _place(seen) < (finding.last_stream, finding.last_sequence):
            return self._refold(seen, finding)
        finding.last_observation = max(finding.last_observation, seen.id or 0)
        return self._step(finding, seen)

    def _step(self, finding: FindingRow, seen: ObservationRow) -> Effect:
        finding.last_received = max(finding.last_received, seen.received_at)
        finding.last_stream, finding.last_sequence = _place(seen)
        if seen.status == FindingStatus.FIRING:
            return _count(finding, seen) if finding.status == FindingStatus.FIRING else _fire(finding, seen)
        if finding.status == FindingStatus.CLEARED or self._clears(seen.fault) is not Clears.READING:
            return Effect.RECORDED
        if self._flaps(finding, seen):
            finding.quiet_since = finding.quiet_since or seen.seen_at
            return Effect.RECORDED
        finding.status, finding.cleared_at, finding.cleared_by = FindingStatus.CLEARED, seen.received_at, "reading"
        return Effect.CLEARED

    def _flaps(self, finding: FindingRow, seen: ObservationRow) -> bool:
        """Note that its reading has ended once more, and say whether that counts as no end."""
        rule = self._policy_now().flapping
        before = tuple(datetime.fromisoformat(turn) for turn in finding.turns)
        if finding.quiet_since is not None or not may_flap(catalogue().get(seen.fault)):
            return flaps(before, seen.seen_at, rule)
        turns = with_turn(before, seen.seen_at, rule)
        finding.turns = [turn.isoformat() for turn in turns]
        begins = flaps(turns, seen.seen_at, rule) and not flaps(before, seen.seen_at, rule)
        if begins:
            finding.evidence = [*finding.evidence, told(turns, rule)][-MAX_EVIDENCE_LINES:]
        return flaps(turns, seen.seen_at, rule)

    def _refold(self, seen: ObservationRow, finding: FindingRow | None) -> Effect:
        folded = _blank(seen)
        for row in self._in_order(seen, finding):
            self._step(folded, row)
        # What the plane itself has seen needs no room: a node must not hide it behind what it invents.
        if folded.count == 0 or (finding is None and seen.stream is not None and not self._has_room()):
            return Effect.RECORDED
        return self._replace(finding, folded, seen)

    def _has_room(self) -> bool:
        """Whether the node may have one more finding; of those that have ended the oldest goes for it."""
        count, firing = func.count(), col(FindingRow.status) == FindingStatus.FIRING
        if self._session.exec(select(count).where(*self._mine(), firing)).one() >= MAX_FIRING:
            return False
        if self._session.exec(select(count).where(*self._mine())).one() < MAX_KNOWN:
            return True
        # One that no repair has judged is made anew from its observations, should it come again.
        ended = select(FindingRow).where(*self._mine(), ~firing, FindingRow.judged_up_to == 0)
        oldest = self._session.exec(ended.order_by(col(FindingRow.last_received), col(FindingRow.id))).first()
        if oldest is not None:
            self._rows.pop((oldest.fault, oldest.entity), None)
            self._session.delete(oldest)
        return oldest is not None

    def _replace(self, finding: FindingRow | None, folded: FindingRow, seen: ObservationRow) -> Effect:
        was = (finding.status, finding.count) if finding else (FindingStatus.CLEARED, 0)
        row = finding or self._rows.setdefault((seen.fault, seen.entity), folded)
        if row is not folded:
            for name in _COPIED:
                setattr(row, name, getattr(folded, name))
        row.last_observation = max(row.last_observation, seen.id or 0)
        self._session.add(row)
        return _effect(was, (row.status, row.count))

    def _in_order(self, seen: ObservationRow, finding: FindingRow | None) -> list[ObservationRow]:
        """This fault's observations on this entity that no repair has judged, in the node's order."""
        newest_first = (
            self._seen()
            .where(ObservationRow.fault == seen.fault, ObservationRow.entity == seen.entity)
            .order_by(
                func.coalesce(ObservationRow.stream, 0).desc(),
                func.coalesce(ObservationRow.sequence, 0).desc(),
                col(ObservationRow.id).desc(),
            )
        )
        rows = list(reversed(self._session.exec(newest_first.limit(MAX_REFOLDED)).all()))
        judged_up_to = finding.judged_up_to if finding else 0
        after = max((_place(row) for row in rows if (row.id or 0) <= judged_up_to), default=(-1, -1))
        fresh = (row for row in rows if (row.id or 0) > judged_up_to and _place(row) >= after)
        return [row for row in fresh if not self._is_judged(row, finding)]

    def _is_judged(self, seen: ObservationRow, finding: FindingRow | None) -> bool:
        """True for what a repair has already dealt with: old kernel lines that are read again, or sent late.

        A boot is judged when a closed repair had seen it and the node has left it; within the running boot, the kernel
        log is judged up to the last record that the repair saw of this fault.
        """
        if seen.boot_id is None or self._boot_id is None or self._judged_up_to == 0:
            return False
        if seen.boot_id != self._boot_id:
            return self._is_judged_boot(seen.boot_id)
        if seen.kernel_sequence is None or finding is None or finding.judged_up_to == 0:
            return False
        return seen.kernel_sequence <= self._judged_kernel_sequence(finding, seen.boot_id)

    def _is_judged_boot(self, boot_id: str) -> bool:
        if boot_id not in self._judged_boots:
            query = self._seen().where(ObservationRow.boot_id == boot_id, col(ObservationRow.id) <= self._judged_up_to)
            self._judged_boots[boot_id] = self._session.exec(query.limit(1)).first() is not None
        return self._judged_boots[boot_id]

    def _judged_kernel_sequence(self, finding: FindingRow, boot_id: str) -> int:
        query = select(func.max(ObservationRow.kernel_sequence)).where(
            ObservationRow.cluster == self._cluster,
            ObservationRow.node == self._node,
            ObservationRow.boot_id == boot_id,
            ObservationRow.fault == finding.fault,
            ObservationRow.entity == finding.entity,
            col(ObservationRow.id) <= finding.judged_up_to,
        )
        highest = self._session.exec(query).one()
        return -1 if highest is None else highest

    def _seen(self) -> Any:
        return select(ObservationRow).where(ObservationRow.cluster == self._cluster, ObservationRow.node == self._node)

    def _clears(self, fault: str) -> Clears:
        """What ends this fault here: the site's policy may say otherwise than the catalogue."""
        return self._policy_now().rule_for(catalogue().get(fault)).clears

    def _policy_now(self) -> Policy:
        if self._policy is None:
            cluster = self._session.get(ClusterRow, self._cluster)
            self._policy = Policy.model_validate(cluster.definition.get("policy", {})) if cluster else Policy()
        return self._policy


def _place(seen: ObservationRow) -> Place:
    """Where the observation stands in its node's own order. What the control plane saw itself stands at (0, 0)."""
    return seen.stream or 0, seen.sequence or 0


def _blank(seen: ObservationRow) -> FindingRow:
    return FindingRow(
        cluster=seen.cluster,
        node=seen.node,
        fault=seen.fault,
        entity=seen.entity,
        status=FindingStatus.CLEARED,
        first_seen=seen.first_seen_at,
        last_seen=seen.seen_at,
        last_received=seen.received_at,
    )


def _fire(finding: FindingRow, seen: ObservationRow) -> Effect:
    finding.status, finding.cleared_at, finding.cleared_by = FindingStatus.FIRING, None, None
    finding.count, finding.evidence = 0, []
    finding.first_seen, finding.last_seen = seen.first_seen_at, seen.seen_at
    _count(finding, seen)
    return Effect.FIRED


def _count(finding: FindingRow, seen: ObservationRow) -> Effect:
    finding.quiet_since = None
    finding.count += seen.count
    finding.first_seen = min(finding.first_seen, seen.first_seen_at)
    finding.last_seen = max(finding.last_seen, seen.seen_at)
    finding.source, finding.boot_id, finding.detail = seen.source, seen.boot_id, dict(seen.detail)
    finding.evidence = [*finding.evidence, *seen.evidence][-MAX_EVIDENCE_LINES:]
    return Effect.COUNTED


def _effect(was: tuple[str, int], now: tuple[str, int]) -> Effect:
    if was == now:
        return Effect.RECORDED
    if was[0] == now[0]:
        return Effect.COUNTED
    return Effect.FIRED if now[0] == FindingStatus.FIRING else Effect.CLEARED
