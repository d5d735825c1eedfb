"""What every message of a node tells, whatever else it says: it lives, in which boot, and when to come back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlmodel import Session, select

from daytwo import node_requests
from daytwo.domain.vocabulary import FindingStatus, State
from daytwo.gateway.models import NOT_A_NODES
from daytwo.intake import NODE, Observation, observe_in
from daytwo.store.tables import FindingRow, NodeRow, RepairRow

SILENT: Final = "agent-silent"
OLDEST_BELIEVED: Final = 30 * 86400.0
"""Seconds. A record that says it is older has a clock that jumped; it counts as seen now."""

ASKED_SECONDS: Final = 1.0
REPAIRED_SECONDS: Final = 5.0
TROUBLED_SECONDS: Final = 10.0
MAX_TOLD: Final = 500
"""Findings that a node is told of after a restore; the intake keeps no more firing."""
REPAIRED: Final = (State.DRAINING, State.ACTING, State.VERIFYING, State.REJOINING)


def hear(session: Session, node: NodeRow, *, boot_id: str, clock: float, now: datetime) -> None:
    """Note that the node spoke now. It is due if that is news: another boot, or it was silent before."""
    if node.boot_id != boot_id:
        node.boot_id = boot_id
        node.due += 1
        node_requests.booted(session, node, now=now)
    if node.last_heard_at is None:
        node.due += 1
    node.last_heard_at, node.clock_skew_seconds = now, clock - now.timestamp()
    if SILENT in _firing(session, node):
        observe_in(session, [_speaks_again(node, now)], now=now)


def come_back_seconds(session: Session, node: NodeRow, *, pulse_seconds: float) -> float:
    """Return how long the agent may wait before its next pulse; `pulse_seconds` when nothing is going on."""
    if node_requests.is_asked(session, node):
        return min(ASKED_SECONDS, pulse_seconds)
    repair = session.exec(select(RepairRow).where(RepairRow.open_key == f"{node.cluster}/{node.name}")).first()
    if repair is not None:
        return min(REPAIRED_SECONDS if repair.state in REPAIRED else TROUBLED_SECONDS, pulse_seconds)
    return min(TROUBLED_SECONDS, pulse_seconds) if _firing(session, node) else pulse_seconds


def server_time(said: float, *, clock: float, now: datetime) -> datetime:
    """Return when the node saw something, by our clock: as long ago as it was by its own when it told us."""
    age = clock - said
    return now - timedelta(seconds=age) if 0 <= age <= OLDEST_BELIEVED else now


def firing_of_a_node(session: Session, node: NodeRow) -> list[list[str]]:
    """Fault and entity of what the store believes to fire, as far as it is the agent's to say."""
    firing = FindingRow.status == FindingStatus.FIRING
    query = select(FindingRow.fault, FindingRow.entity).where(
        FindingRow.cluster == node.cluster, FindingRow.node == node.name, firing
    )
    found = [[fault, entity] for fault, entity in session.exec(query) if fault not in NOT_A_NODES]
    return found[:MAX_TOLD]


def _firing(session: Session, node: NodeRow) -> set[str]:
    query = select(FindingRow.fault).where(
        FindingRow.cluster == node.cluster, FindingRow.node == node.name, FindingRow.status == FindingStatus.FIRING
    )
    return set(session.exec(query.distinct()))


def _speaks_again(node: NodeRow, now: datetime) -> Observation:
    return Observation(
        cluster=node.cluster,
        node=node.name,
        fault=SILENT,
        entity=NODE,
        status=FindingStatus.CLEARED,
        first_seen=now,
        last_seen=now,
        source="gateway",
    )
