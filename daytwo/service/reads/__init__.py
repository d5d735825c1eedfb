"""The one place that reads: API, CLI and console show what these return. Bounded, filtered, from the store only."""

from __future__ import annotations

from daytwo.service.reads.lookup import find_cluster, find_node, find_repair
from daytwo.service.reads.nodes import findings, node, nodes
from daytwo.service.reads.paging import MOST, Filter
from daytwo.service.reads.plane import audit_rows, audit_verdict, cluster, clusters, fault, faults, freezes
from daytwo.service.reads.repairs import progress, repair, repairs
from daytwo.service.reads.rules import rule
from daytwo.service.reads.status import status, store_away

__all__ = [
    "MOST",
    "Filter",
    "audit_rows",
    "audit_verdict",
    "cluster",
    "clusters",
    "fault",
    "faults",
    "find_cluster",
    "find_node",
    "find_repair",
    "findings",
    "freezes",
    "node",
    "nodes",
    "progress",
    "repair",
    "repairs",
    "rule",
    "status",
    "store_away",
]
