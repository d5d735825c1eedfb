"""Loads what the nodes of a cluster have in common at one moment: pools, common troubles, what is declared of them.

Loaded once for all nodes that are judged together; `daytwo.store.situations` adds what each has of its own. Reads only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from daytwo.budgets import peers_in
from daytwo.domain.cases import entry_of
from daytwo.domain.common_cause import count_trouble, pool_domain
from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.load_definition import expand_nodes
from daytwo.domain.seams import ActKind
from daytwo.domain.situation import DomainTrouble
from daytwo.domain.vocabulary import FaultClass, Finding, FindingStatus
from daytwo.faults.catalogue import catalogue
from daytwo.store.tables import FindingRow, IntentRow, NodeRow

MOST_NAMED: Final = 5_000
"""Names in one question to the store; above that it is asked about all nodes."""


@dataclass(frozen=True, slots=True)
class Pools:
    """How many nodes each pool has, and the names of those that take no work. Whoever takes one out adds it."""

    sizes: dict[str, int]
    out: dict[str, set[str]]

    def out_beside(self, node: NodeRow) -> int:
        """How many others of the node's pool are out."""
        return len(self.out[node.pool] - {node.name})


Trouble = dict[str, tuple[DomainTrouble, ...]]
"""What began to be wrong at the same time, by domain; pools are among the domains."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the nodes of one cluster have in common at one moment. `survives_reboot` is by node, where it is known."""

    pools: Pools
    trouble: Trouble
    survives_reboot: dict[str, dict[str, bool]]

    def trouble_of(self, node: NodeRow) -> tuple[DomainTrouble, ...]:
        """What goes on in the domains of a node, largest first."""
        found = [each for domain in domains_of(node.domains, node.pool) for each in self.trouble.get(domain, ())]
        return tuple(sorted(found, key=lambda each: (-each.nodes, each.domain, each.fault_class)))


def load_pools(session: Session, cluster: str, pools: Iterable[str] | None = None) -> Pools:
    """Count the pools of a cluster, all or those named. What is being taken out at this moment is out."""
    if pools is None:
        pools = session.exec(select(NodeRow.pool).where(NodeRow.cluster == cluster).distinct()).all()
    members = {pool: peers_in(session, cluster, pool) for pool in pools}
    on_the_way = set(session.exec(select(IntentRow.node).where(*_being_taken(cluster))).all())
    out = {
        pool: {peer.name for peer in peers if peer.is_out or peer.name in on_the_way} for pool, peers in members.items()
    }
    return Pools({pool: len(peers) for pool, peers in members.items()}, out)


def _being_taken(cluster: str) -> tuple[ColumnElement[bool], ...]:
    taking = (ActKind.RESERVE, ActKind.DRAIN)
    return (
        col(IntentRow.open_node).is_not(None),
        col(IntentRow.cluster) == cluster,
        col(IntentRow.kind).in_(taking),
    )


def load_trouble(session: Session, definition: ClusterDefinition, now: datetime) -> Trouble:
    """Count what fires in a cluster by domain and class of fault."""
    firing = (FindingRow.cluster == definition.name, FindingRow.status == FindingStatus.FIRING)
    columns = select(FindingRow.node, FindingRow.fault, FindingRow.first_seen)
    by_node: dict[str, list[Finding]] = defaultdict(list)
    for node, fault, since in session.exec(columns.where(*firing)):
        by_node[node].append(_began(definition.name, node, fault, since))
    here = (NodeRow.cluster == definition.name, col(NodeRow.left_at).is_(None))
    members = select(NodeRow.name, NodeRow.domains, NodeRow.pool).where(*here)
    if len(by_node) <= MOST_NAMED:
        members = members.where(col(NodeRow.name).in_(by_node))
    domains = {name: domains_of(within, pool) for name, within, pool in session.exec(members) if name in by_node}
    window = timedelta(seconds=definition.policy.breaker.window_seconds)
    counted = count_trouble(by_node, domains, class_of, window=window, now=now)
    return _by_domain(counted)


def _began(cluster: str, node: str, fault: str, since: datetime) -> Finding:
    """As much of a finding as is counted; a thousand whole ones would be read for nothing."""
    return Finding(
        id=0,
        cluster=cluster,
        node=node,
        fault=fault,
        entity="",
        status=FindingStatus.FIRING,
        first_seen=since,
        last_seen=since,
    )


def _by_domain(counted: Iterable[DomainTrouble]) -> Trouble:
    found: dict[str, list[DomainTrouble]] = defaultdict(list)
    for trouble in counted:
        found[trouble.domain].append(trouble)
    return {domain: tuple(troubles) for domain, troubles in found.items()}


def domains_of(domains: Iterable[str], pool: str) -> tuple[str, ...]:
    """The domains in which a node is counted; its pool is the last."""
    return (*domains, pool_domain(pool))


@lru_cache(maxsize=512)
def class_of(fault: str) -> FaultClass:
    """The class of a fault; one that the catalogue does not know has the class of an unknown code."""
    return entry_of(catalogue(), fault).fault_class


def survives_reboot(definition: ClusterDefinition) -> dict[str, dict[str, bool]]:
    """What survives a reboot, by node and path, for nodes of which anything is declared."""
    known = [group for group in definition.groups if group.survives_reboot]
    return {name: group.survives_reboot for group in known for name in expand_nodes(group.nodes)}
