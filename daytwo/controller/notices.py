"""What people are told of an incident: operations.md's message (c), judged in ten seconds. Pure text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from daytwo.adapters import Cluster
from daytwo.budgets import allowed_out
from daytwo.domain.message import clean
from daytwo.store.tables import IncidentRow

MOST_DOMAINS: Final = 5

Notice = tuple[str, str]
"""Subject and text."""


def began(row: IncidentRow, account: Mapping[str, int], cluster: Cluster) -> Notice:
    """The one notice of an incident."""
    policy = cluster.definition.policy
    until = row.last_at + timedelta(seconds=policy.breaker.hold_seconds)
    subject = f"INCIDENT {row.cluster}: {row.nodes} nodes with {row.fault_class} faults"
    lines = (
        f"🔴 INCIDENT {row.cluster}: {row.nodes} of {account['nodes']} nodes with {row.fault_class} faults since "
        f"{row.first_at:%H:%M:%SZ}, within {_span(row)} · probably ONE cause, not {row.nodes} nodes",
        f"Where: {_where(row)}",
        f"Not done: while this lasts no repair is opened for them, and nothing is drained, booted or requeued for it. "
        f"{account['repairs']} repairs were opened before it was seen.",
        f"Contained: {account['contained']} nodes take no new jobs, what runs goes on; at most "
        f"{policy.budget.containing_share:.0%} of a pool and {policy.budget.containing_nodes} nodes.",
        f"When it is over, and at the latest at {until:%H:%M:%SZ}, each node is judged as it is then.",
        f"Look: daytwo findings list --cluster {row.cluster} · daytwo status · {row.id}",
    )
    return clean(subject), "\n".join(clean(line) for line in lines)


def ended(row: IncidentRow, account: Mapping[str, int], cluster: Cluster) -> Notice:
    """The notice that it is over, or that its nodes are asked about again although they still fire."""
    closed = row.closed_at or row.last_at
    head = "🟢 INCIDENT OVER" if row.closed_at else "🟡 INCIDENT HELD FOR LONG ENOUGH"
    lines = (
        f"{head} {row.cluster}: {row.fault_class} faults on {row.nodes} nodes, {row.first_at:%H:%M:%SZ} to "
        f"{closed:%H:%M:%SZ} · {account['firing']} of them still fire and are judged as they are now",
        *_in_batches(account, cluster),
        f"Contained were {account['contained']} nodes; those that are well take new jobs again.",
        f"Look: daytwo repairs list · daytwo nodes list --state unhealthy · {row.id}",
    )
    subject = f"{head.split(' ', 1)[1]} {row.cluster}: {row.fault_class} faults on {row.nodes} nodes"
    return clean(subject), "\n".join(clean(line) for line in lines)


def _in_batches(account: Mapping[str, int], cluster: Cluster) -> tuple[str, ...]:
    policy = cluster.definition.policy
    if account["firing"] <= policy.breaker.pool_nodes:
        return ()
    allowed = allowed_out(account["nodes"], policy.budget)
    return (f"Repairs are opened for at most {allowed} of a pool at a time; the next when one of them has ended.",)


def _span(row: IncidentRow) -> str:
    seconds = (row.last_at - row.first_at).total_seconds()
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _where(row: IncidentRow) -> str:
    largest = sorted(row.domains.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{domain} ({nodes})" for domain, nodes in largest[:MOST_DOMAINS]]
    more = len(largest) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more > 0 else shown)
