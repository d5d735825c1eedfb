"""Loads what triage looks at: nodes, now. Called by the reconciler, many at once, and by `assess`; reads only.

What nodes have in common (pools, common troubles) is loaded once for all of them, what is their own by one query for
each kind: a thousand nodes that are due cost a thousand times what one does, and not a thousand times a thousand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import or_
from sqlmodel import Session, col, select

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import NotFound
from daytwo.domain.machines import before_of
from daytwo.domain.repair_states import LEAVES_MARKS, Event
from daytwo.domain.seams import NodeFacts
from daytwo.domain.situation import OpenRepair, PastRepair, Situation
from daytwo.domain.vocabulary import Action, Finding, FindingStatus, NodeRole, State, Workload
from daytwo.store.surroundings import Surroundings, load_pools, load_trouble, survives_reboot
from daytwo.store.tables import FindingRow, NodeRow, RepairEventRow, RepairRow

HISTORY: Final = timedelta(days=28)
"""How far back repairs count: three incidents on one GPU in 28 days propose its removal (operations.md 3)."""


@dataclass(frozen=True, slots=True)
class Own:
    """What some nodes have of their own, by name; `failed` by repair: what the tests said of an act of it."""

    findings: dict[str, list[Finding]]
    history: dict[str, list[PastRepair]]
    opened: dict[str, RepairRow]
    failed: dict[str, str]


def load_situation(
    session: Session,
    node: NodeRow,
    definition: ClusterDefinition,
    *,
    policy_revision: int,
    facts: NodeFacts | None,
    workloads: tuple[Workload, ...] | None,
    able: frozenset[Action] | None = None,
    now: datetime,
) -> Situation:
    """Everything known of `node`. `facts` and `workloads` come from the caller, who may have read them just now."""
    pools = load_pools(session, definition.name, [node.pool])
    around = Surroundings(pools, load_trouble(session, definition, now), survives_reboot(definition))
    own = load_own(session, definition.name, [node.name], now)
    situation = situation_of(node, around, own, policy_revision=policy_revision, able=able)
    return situation.model_copy(update={"facts": facts, "workloads": workloads})


def situation_of(
    node: NodeRow,
    around: Surroundings,
    own: Own,
    *,
    policy_revision: int,
    able: frozenset[Action] | None,
) -> Situation:
    """One node of those that were loaded, with the facts that are stored of it."""
    return Situation(
        cluster=node.cluster,
        node=node.name,
        role=NodeRole(node.role),
        pool=node.pool,
        domains=tuple(node.domains),
        expected_gpus=node.expected_gpus,
        boot_id=node.boot_id,
        last_heard_at=node.last_heard_at,
        facts=NodeFacts.model_validate(node.facts) if node.facts else None,
        findings=tuple(own.findings.get(node.name, ())),
        workloads=None,
        history=tuple(own.history.get(node.name, ())),
        open_repair=_open_repair(own.opened.get(node.name), own.failed),
        trouble=around.trouble_of(node),
        pool_nodes=around.pools.sizes[node.pool],
        pool_contained=around.pools.out_beside(node),
        policy_revision=policy_revision,
        survives_reboot=around.survives_reboot.get(node.name, {}),
        able=able,
        held=_held(node),
        before=before_of(node.inventory, node.identity, node.expected_gpus),
        clock_skew_seconds=node.clock_skew_seconds,
    )


def _held(node: NodeRow) -> str:
    if node.left_at is not None:
        return f"left out of the definition of {node.cluster} since {node.left_at:%Y-%m-%d %H:%MZ}"
    return f"held by {node.held_by}: {node.held_reason}" if node.held_by else ""


def load_own(session: Session, cluster: str, names: Collection[str], now: datetime) -> Own:
    """What these nodes have of their own: findings, closed repairs of four weeks, the open one."""
    opened = _opened(session, cluster, names)
    return Own(
        findings=_findings(session, cluster, names),
        history=_history(session, cluster, names, now),
        opened=opened,
        failed=_failed(session, [row.id for row in opened.values() if row.disturbed]),
    )


def node_row(session: Session, cluster: str, name: str) -> NodeRow:
    """The row of a declared node. Raises `NotFound`."""
    row = session.get(NodeRow, (cluster, name))
    if row is None:
        raise NotFound(f"node: found {cluster}/{name}, which is not declared; `daytwo nodes list` shows those that are")
    return row


def _findings(session: Session, cluster: str, names: Collection[str]) -> dict[str, list[Finding]]:
    """All findings, firing and cleared."""
    found: dict[str, list[Finding]] = defaultdict(list)
    theirs = (col(FindingRow.cluster) == cluster, col(FindingRow.node).in_(names))
    for row in session.exec(select(FindingRow).where(*theirs).order_by(col(FindingRow.id))):
        found[row.node].append(_finding(row))
    return found


def _finding(row: FindingRow) -> Finding:
    return Finding(
        id=row.id or 0,
        cluster=row.cluster,
        node=row.node,
        fault=row.fault,
        entity=row.entity,
        status=FindingStatus(row.status),
        count=row.count,
        first_seen=row.first_seen,
        last_seen=row.last_received,
        cleared_at=row.cleared_at,
        cleared_by=row.cleared_by,
        boot_id=row.boot_id,
        source=row.source,
        evidence=tuple(row.evidence),
        detail=row.detail,
        turns=tuple(datetime.fromisoformat(turn) for turn in row.turns),
    )


def _history(session: Session, cluster: str, names: Collection[str], now: datetime) -> dict[str, list[PastRepair]]:
    closed = (col(RepairRow.cluster) == cluster, col(RepairRow.node).in_(names))
    # What still stands, a snooze or the marks of a removal, counts however old it is.
    stands = or_(col(RepairRow.snooze_until) > now, col(RepairRow.state).in_(LEAVES_MARKS))
    recent = (*closed, col(RepairRow.closed_at).is_not(None), or_(col(RepairRow.closed_at) > now - HISTORY, stands))
    found: dict[str, list[PastRepair]] = defaultdict(list)
    for row in session.exec(select(RepairRow).where(*recent).order_by(col(RepairRow.closed_at).desc())):
        if row.closed_at:
            found[row.node].append(_past(row, row.closed_at))
    return found


def _past(row: RepairRow, closed_at: datetime) -> PastRepair:
    return PastRepair(
        repair_id=row.id,
        fault=row.fault,
        action=Action(row.action) if row.action else None,
        rung=row.rung,
        outcome=State(row.state),
        acted="acted" in row.stamps,
        opened_at=row.opened_at,
        closed_at=closed_at,
        snooze_until=row.snooze_until,
        faults=tuple((row.proposal or {}).get("faults", ())),
        entities=tuple((row.proposal or {}).get("entities", ())),
    )


def _opened(session: Session, cluster: str, names: Collection[str]) -> dict[str, RepairRow]:
    keys = [f"{cluster}/{name}" for name in names]
    return {row.node: row for row in session.exec(select(RepairRow).where(col(RepairRow.open_key).in_(keys)))}


def _failed(session: Session, repair_ids: Collection[str]) -> dict[str, str]:
    """What the tests said of the last act that did not help, by repair."""
    if not repair_ids:
        return {}
    found = select(RepairEventRow.repair_id, RepairEventRow.text).where(
        col(RepairEventRow.repair_id).in_(repair_ids), RepairEventRow.event == Event.STILL_FAULTY
    )
    return dict(session.exec(found.order_by(col(RepairEventRow.number))).all())


def _open_repair(row: RepairRow | None, failed: Mapping[str, str]) -> OpenRepair | None:
    if row is None:
        return None
    return OpenRepair(
        repair_id=row.id,
        state=row.state,
        revision=row.revision,
        rung=row.rung,
        action=Action(row.action) if row.action else None,
        contained=row.contained,
        disturbed=row.disturbed,
        failed=failed.get(row.id, ""),
    )
