"""Ends what an hour of quiet ends: errors of applications, which no reading and no repair clears.

Part of the loop of `daytwo.controller.flapping`. The catalogue says which faults (`clears = "quiet-for"`) and how long;
quiet counts only of a node whose agent is heard and has missed nothing of its kernel log for an hour (check `ok`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import and_
from sqlmodel import Session, col, select

from daytwo.controller.leases import Lease
from daytwo.domain.cases import entry_of
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import Clears, FindingStatus
from daytwo.faults.catalogue import catalogue
from daytwo.intake import lock_node
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, FindingRow, NodeRow

LOG_CHECK: Final = "kernel-log"
USUAL_SECONDS: Final = 3600.0
"""For a fault that only the site's policy ends by quiet."""

Place = tuple[str, str, int]
"""Cluster, node and number of a finding."""


def end_what_is_quiet(store: Store, lease: Lease, now: datetime) -> None:
    """Clear each finding that quiet clears and that was quiet for long enough. Raises `LeaseLost`."""
    with store.read() as session:
        found = [place for row in session.exec(select(ClusterRow)) for place in _quiet(session, row, now)]
    for cluster, node, number in found:
        with store.write() as session:
            lease.guard(session)
            _end(session, (cluster, node, number), now)


def _quiet(session: Session, cluster: ClusterRow, now: datetime) -> Iterator[Place]:
    policy = Policy.model_validate(cluster.definition.get("policy", {}))
    heard = now - timedelta(seconds=policy.timing.silent_after_seconds)
    firing = (FindingRow.cluster == cluster.name, FindingRow.status == FindingStatus.FIRING)
    its_node = and_(col(NodeRow.cluster) == FindingRow.cluster, col(NodeRow.name) == FindingRow.node)
    columns = select(FindingRow.node, FindingRow.id, NodeRow.checks).join(NodeRow, its_node)
    for fault in session.exec(select(FindingRow.fault).where(*firing).distinct()).all():
        seconds = _seconds(policy, fault)
        if seconds is None:
            continue
        quiet = (FindingRow.fault == fault, col(FindingRow.last_received) <= now - timedelta(seconds=seconds))
        for node, number, checks in session.exec(columns.where(*firing, *quiet, col(NodeRow.last_heard_at) > heard)):
            if number and checks.get(LOG_CHECK) == "ok":
                yield cluster.name, node, number


def _seconds(policy: Policy, fault: str) -> float | None:
    """How long this fault must be quiet; `None` for one that quiet does not end here."""
    entry = entry_of(catalogue(), fault)
    if policy.rule_for(entry).clears is not Clears.QUIET_FOR:
        return None
    return entry.quiet_for_seconds or USUAL_SECONDS


def _end(session: Session, place: Place, now: datetime) -> None:
    cluster, node, number = place
    row = lock_node(session, cluster, node)
    finding = session.get(FindingRow, number, populate_existing=True)
    if finding is None or finding.status != FindingStatus.FIRING:
        return
    declared = session.get(ClusterRow, cluster)
    seconds = (
        _seconds(Policy.model_validate(declared.definition.get("policy", {})), finding.fault) if declared else None
    )
    if seconds is None or finding.last_received > now - timedelta(seconds=seconds):
        return
    finding.status, finding.cleared_at, finding.cleared_by = FindingStatus.CLEARED, now, "quiet"
    row.due += 1
