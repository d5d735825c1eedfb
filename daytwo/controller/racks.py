"""Compares the GPUs of each rack under load: one that differs is asked about, three nodes are told to facilities once.

A loop of the controller. What each GPU is like under load is in its node's inventory; what differs, and when it is the
site's, is in `daytwo.domain.rack_median`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlmodel import Session, col, select

from daytwo.controller.leases import Lease
from daytwo.controller.loops import Clock, every
from daytwo.domain.load_definition import expand_nodes
from daytwo.domain.machines import known_gpus
from daytwo.domain.message import clean
from daytwo.domain.rack_median import OUTLIER, Compared, Loaded, Place, compare
from daytwo.domain.seams import Notifier
from daytwo.domain.vocabulary import FindingStatus
from daytwo.intake import CLUSTER_WIDE, Observation, observe
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, FindingRow, NodeRow

RACK: Final = "rack-outliers"
STEP_SECONDS: Final = 60.0
HEARD_WITHIN: Final = timedelta(minutes=3)
"""Three pulses. What a node said before that says nothing of its load now."""


async def watch_racks(
    store: Store, notifier: Notifier, lease: Lease, *, step_seconds: float = STEP_SECONDS, clock: Clock | None = None
) -> None:
    """Compare every minute, for ever. Raises `LeaseLost`; `Unreachable` where facilities could not be told."""
    clock = clock or Clock()

    async def step() -> None:
        await look_at_racks(store, notifier, lease, clock.now())

    await every(step_seconds, step, clock=clock, lease=lease)


async def look_at_racks(store: Store, notifier: Notifier, lease: Lease, now: datetime) -> None:
    """Compare once. Facilities are told before that is written, so that a crash between the two tells them again."""
    looked = await asyncio.to_thread(_look, store, now)
    findings = [each for _, found in looked for each in found.findings]
    if findings:
        await asyncio.to_thread(observe, store, findings, now=now, guard=lease.guard)
    for cluster, found in looked:
        for domain, nodes in found.sites.items():
            await notifier.tell(*_notice(cluster, domain, nodes), urgent=False)
            seen = _seen(cluster, RACK, (CLUSTER_WIDE, domain), f"{len(nodes)} nodes: {', '.join(nodes)}", now)
            await asyncio.to_thread(observe, store, [seen], now=now, guard=lease.guard)


class _Node(NamedTuple):
    """What is asked of a node; `NodeRow` has more, and there are thousands of them."""

    name: str
    domains: list[str]
    inventory: dict[str, Any]
    last_heard_at: datetime | None


class _Found(NamedTuple):
    """What is new in one cluster: findings to write, and racks with their nodes of which facilities are to be told."""

    findings: list[Observation]
    sites: dict[str, tuple[str, ...]]


def _look(store: Store, now: datetime) -> list[tuple[str, _Found]]:
    with store.read() as session:
        return [(row.name, _judge(session, row, now)) for row in session.exec(select(ClusterRow)).all()]


def _judge(session: Session, cluster: ClusterRow, now: datetime) -> _Found:
    nodes = _nodes(session, cluster.name)
    firing = _firing(session, cluster.name, OUTLIER)
    racks = _racks(nodes, _caps(cluster.definition), now)
    judged = {domain: compare(rack, frozenset(firing)) for domain, rack in racks.items()}
    told = _merged(judged.values()) | dict.fromkeys(_swapped(firing, nodes), "")
    findings = [_seen(cluster.name, OUTLIER, place, why, now) for place, why in _changed(told, firing)]
    known = {domain for _, domain in _firing(session, cluster.name, RACK)}
    over = {domain for domain in known if domain not in _declared(nodes) or _is_over(judged.get(domain))}
    findings += [_seen(cluster.name, RACK, (CLUSTER_WIDE, domain), "", now) for domain in sorted(over)]
    return _Found(
        findings, {domain: each.sites for domain, each in judged.items() if each.sites and domain not in known}
    )


def _nodes(session: Session, cluster: str) -> list[_Node]:
    what = select(NodeRow.name, NodeRow.domains, NodeRow.inventory, NodeRow.last_heard_at)
    mine = (NodeRow.cluster == cluster, col(NodeRow.left_at).is_(None))
    return [_Node(*row) for row in session.exec(what.where(*mine))]


def _firing(session: Session, cluster: str, fault: str) -> set[Place]:
    mine = (FindingRow.cluster == cluster, FindingRow.fault == fault, FindingRow.status == FindingStatus.FIRING)
    return set(session.exec(select(FindingRow.node, FindingRow.entity).where(*mine)))


def _caps(definition: Mapping[str, Any]) -> dict[str, int]:
    groups = [group for group in definition.get("groups", ()) if group.get("power_cap_watts")]
    return {name: group["power_cap_watts"] for group in groups for name in expand_nodes(group["nodes"])}


def _declared(nodes: Iterable[_Node]) -> set[str]:
    return {domain for node in nodes for domain in node.domains}


def _racks(nodes: Iterable[_Node], caps: Mapping[str, int], now: datetime) -> dict[str, list[Loaded]]:
    racks: dict[str, list[Loaded]] = {}
    for node in nodes:
        if node.last_heard_at is not None and now - node.last_heard_at <= HEARD_WITHIN:
            loaded = list(_loaded(node, caps.get(node.name)))
            for domain in node.domains:
                racks.setdefault(domain, []).extend(loaded)
    return racks


def _loaded(node: _Node, cap: int | None) -> Iterator[Loaded]:
    for gpu in node.inventory.get("gpus", ()):
        if gpu["uuid"] and (load := gpu.get("load")):
            yield Loaded(node.name, gpu["uuid"], gpu["name"] or "", **load, cap=cap)


def _merged(judged: Iterable[Compared]) -> dict[Place, str]:
    """A node is in many domains; a GPU that is like the others of one of them does not differ."""
    told: dict[Place, str] = {}
    for each in judged:
        told.update({place: why and told.get(place, why) for place, why in each.told.items()})
    return told


def _swapped(firing: Iterable[Place], nodes: Iterable[_Node]) -> list[Place]:
    """GPUs that are no part of their node any more: nobody will read them again."""
    parts = {node.name: known_gpus(node.inventory) for node in nodes}
    return [(node, gpu) for node, gpu in firing if parts.get(node) and gpu not in parts[node]]


def _changed(told: Mapping[Place, str], firing: set[Place]) -> list[tuple[Place, str]]:
    return [(place, why) for place, why in sorted(told.items()) if bool(why) != (place in firing)]


def _is_over(compared: Compared | None) -> bool:
    return compared is not None and bool(compared.told) and not compared.sites


def _seen(cluster: str, fault: str, place: Place, why: str, now: datetime) -> Observation:
    status = FindingStatus.FIRING if why else FindingStatus.CLEARED
    evidence = (why or "like the rest of its rack again",)
    return Observation(cluster, place[0], fault, place[1], status, now, now, "rack", evidence=evidence)


def _notice(cluster: str, domain: str, nodes: tuple[str, ...]) -> tuple[str, str]:
    text = (
        f"🟡 {cluster}: GPUs of {len(nodes)} nodes in {domain} differ from their rack under load: {', '.join(nodes)}\n"
        f"For facilities: cooling, power or a cap that is not declared. daytwo asks about none of these nodes for it.\n"
        f"Look: daytwo findings list --cluster {cluster}"
    )
    return clean(f"RACK {cluster}/{domain}: {len(nodes)} nodes differ under load"), "\n".join(
        map(clean, text.split("\n"))
    )
