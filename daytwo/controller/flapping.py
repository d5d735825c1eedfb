"""Ends what flapped and is calm: a finding that went on as firing although its last reading was good.

A loop of the controller, which also ends what is `quiet`. What begins and what counts is in `daytwo.domain.flapping`;
intake notes each turn.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock, every
from daytwo.controller.quiet import end_what_is_quiet
from daytwo.domain.flapping import flaps
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import FindingStatus
from daytwo.intake import lock_node
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, FindingRow

STEP_SECONDS: Final = 30.0


async def watch_flapping(
    store: Store, lease: Lease, *, step_seconds: float = STEP_SECONDS, clock: Clock | None = None
) -> None:
    """Look every half minute, for ever. Raises `LeaseLost`."""
    clock = clock or Clock()

    async def step() -> None:
        await asyncio.to_thread(end_what_is_calm, store, lease, clock.now())
        await asyncio.to_thread(end_what_is_quiet, store, lease, clock.now())

    await every(step_seconds, step, clock=clock, lease=lease)


def end_what_is_calm(store: Store, lease: Lease, now: datetime) -> None:
    """Clear each finding that no longer flaps and whose last reading was good. Raises `LeaseLost`."""
    with store.read() as session:
        quiet = [(row.cluster, row.node, row.id) for row in session.exec(_quiet())]
    for cluster, node, number in quiet:
        with store.write() as session:
            lease.guard(session)
            _end(session, cluster, node, number, now)


def _quiet() -> SelectOfScalar[FindingRow]:
    firing = col(FindingRow.status) == FindingStatus.FIRING
    return select(FindingRow).where(firing, col(FindingRow.quiet_since).is_not(None))


def _end(session: Session, cluster: str, node: str, number: int | None, now: datetime) -> None:
    row = lock_node(session, cluster, node)
    finding = session.get(FindingRow, number, populate_existing=True)
    if finding is None or finding.status != FindingStatus.FIRING or finding.quiet_since is None:
        return
    declared = session.get(ClusterRow, cluster)
    policy = Policy.model_validate(declared.definition.get("policy", {})) if declared else Policy()
    if flaps([datetime.fromisoformat(turn) for turn in finding.turns], now, policy.flapping):
        return
    finding.status, finding.cleared_at, finding.cleared_by = FindingStatus.CLEARED, now, "reading"
    finding.quiet_since = None
    row.due += 1
