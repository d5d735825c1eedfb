"""How many nodes may be out at once: the right to act on one more, and who is out already.

Activities take the right; `daytwo.waits` tells what it would wait for; the reconciler counts pools by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlmodel import Session, col, select

from daytwo.domain import exchange as x
from daytwo.domain.policy import Budget
from daytwo.domain.vocabulary import NodeRole, State
from daytwo.left_marks import Removed
from daytwo.store import locks
from daytwo.store.tables import NodeRow, RepairRow

OUT: Final = frozenset({"DRAIN", "DOWN", "FAIL", "REBOOT_ISSUED"})
"""Scheduler states of a node that takes no work; nor does one that somebody keeps for maintenance now."""


def take_right(session: Session, ref: x.RepairRef, budget: Budget, now: datetime) -> str:
    """Take the permission to have one more node out. Returns why not, or nothing when it is taken.

    Nodes of *others* are counted that are out for any reason, so that at least one may always be repaired; those that
    only wait for their right behind this one are not, or each would wait for the other. One at a time counts in a
    cluster.
    """
    locks.hold(session, locks.Lock.RIGHTS, ref.cluster)
    row = session.get_one(RepairRow, ref.repair_id, with_for_update=True)
    if row.right_taken_at is not None:
        return ""
    if problem := over_budget(session, ref, budget):
        return problem
    row.right_taken_at = now
    session.add(row)
    return ""


def over_budget(session: Session, ref: x.RepairRef, budget: Budget) -> str:
    """Why one more node may not be out now, or nothing; read only."""
    this = session.get_one(NodeRow, (ref.cluster, ref.node))
    peers = peers_in(session, ref.cluster, this.pool)
    acting = _acting_nodes(session, ref.cluster)
    aside = _waiting_behind(session, ref) | {ref.node}
    out = {n.name for n in peers if n.name not in aside and (n.name in acting or n.is_out)}
    allowed = allowed_out(len(peers), budget)
    if len(out) >= allowed:
        named = ", ".join([*sorted(out)[:5], *(["…"] if len(out) > 5 else [])])
        some = "1 node is out" if len(out) == 1 else f"{len(out)} nodes are out"
        return f"{some} ({named}); the budget of pool {this.pool} allows {allowed}"
    if short := _quorum(session, this):
        return short
    theirs = _domains_of(session, ref.cluster, acting - {ref.node})
    for domain in this.domains:
        beside = sorted(name for name, domains in theirs.items() if domain in domains)
        if len(beside) >= budget.acting_per_domain:
            return f"{beside[0]} is being repaired; the budget of {domain} allows {budget.acting_per_domain} at a time"
    return ""


def _quorum(session: Session, this: NodeRow) -> str:
    """Why a node that others depend on may not go now: of three or more a majority stays, of two the other one."""
    if this.role == NodeRole.WORKER:
        return ""
    alike = select(NodeRow).where(
        NodeRow.cluster == this.cluster, NodeRow.role == this.role, col(NodeRow.left_at).is_(None)
    )
    rows = session.exec(alike).all()
    out = [row.name for row in rows if row.name != this.name and _is_out(row.facts, row.facts_at)]
    if len(out) < max(1, (len(rows) - 1) // 2):
        return ""
    return f"{', '.join(out[:5])} of {len(rows)} {this.role} nodes are out: this one is needed"


def allowed_out(pool_nodes: int, budget: Budget) -> int:
    """How many nodes of a pool of this size may be acted on at once; never less than one."""
    return max(1, min(int(pool_nodes * budget.acting_share), budget.acting_nodes))


class Peer(NamedTuple):
    """A node of a pool, as far as budgets ask. `is_out`: it takes no work, for any reason, or cannot be read."""

    name: str
    domains: Sequence[str]
    is_out: bool


def peers_in(session: Session, cluster: str, pool: str) -> list[Peer]:
    """The nodes of a pool, less those that were removed.

    Columns, not rows, for a look at one node asks for all ten thousand beside it.
    """
    columns = select(NodeRow.name, NodeRow.domains, NodeRow.facts, NodeRow.facts_at)
    here = (NodeRow.cluster == cluster, NodeRow.pool == pool, col(NodeRow.left_at).is_(None))
    found = session.exec(columns.where(*here)).all()
    gone = Removed(session, cluster)
    return [
        Peer(name, domains, _is_out(facts, facts_at))
        for name, domains, facts, facts_at in found
        if not gone.has(name, facts)
    ]


def _is_out(facts: Mapping[str, Any] | None, facts_at: datetime | None) -> bool:
    if facts is None:
        return facts_at is not None
    return not facts["responding"] or bool(facts.get("planned")) or not OUT.isdisjoint(facts["states"])


def _waiting_behind(session: Session, ref: x.RepairRef) -> set[str]:
    """Nodes that are out because their repair waits for its right, and was opened later than this one."""
    behind = (
        RepairRow.cluster == ref.cluster,
        RepairRow.state == State.WAITING,
        col(RepairRow.open_key).is_not(None),
        col(RepairRow.right_taken_at).is_(None),
        col(RepairRow.id) > ref.repair_id,
    )
    return set(session.exec(select(RepairRow.node).where(*behind)).all())


def _domains_of(session: Session, cluster: str, nodes: set[str]) -> dict[str, list[str]]:
    """A rack may hold nodes of several pools."""
    found = select(NodeRow.name, NodeRow.domains).where(NodeRow.cluster == cluster, col(NodeRow.name).in_(nodes))
    return {name: list(domains) for name, domains in session.exec(found)}


def _acting_nodes(session: Session, cluster: str) -> set[str]:
    holding = (
        RepairRow.cluster == cluster,
        col(RepairRow.right_taken_at).is_not(None),
        col(RepairRow.open_key).is_not(None),
    )
    return set(session.exec(select(RepairRow.node).where(*holding)).all())
