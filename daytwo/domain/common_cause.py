"""Many nodes that fall together are one cause, not many: counting them, and asking whether a fault is part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from daytwo.domain.policy import Policy
from daytwo.domain.situation import DomainTrouble, Situation
from daytwo.domain.vocabulary import FaultClass, Finding, FindingStatus

Began = tuple[datetime, str]
"""When a node began to fire, and its name."""


def pool_domain(pool: str) -> str:
    """The name under which a pool is counted among the domains."""
    return f"pool/{pool}"


def count_trouble(
    findings_by_node: Mapping[str, Iterable[Finding]],
    domains_by_node: Mapping[str, Sequence[str]],
    class_of: Callable[[str], FaultClass],
    window: timedelta,
    now: datetime,
) -> tuple[DomainTrouble, ...]:
    """Count, for each domain and class of fault, the nodes that began to fire within `window` of each other.

    A node's domains include `pool_domain(pool)`. Whatever still fires counts, however long ago it began: when a breaker
    ends, the present is judged and nothing is replayed. What begins after `now` does not count. Largest first.
    """
    began: dict[tuple[str, str], list[Began]] = {}
    for node, findings in findings_by_node.items():
        for finding in findings:
            if finding.status is FindingStatus.FIRING and finding.first_seen <= now:
                for domain in domains_by_node.get(node, ()):
                    key = (domain, class_of(finding.fault).value)
                    began.setdefault(key, []).append((finding.first_seen, node))
    troubles = [_trouble(key, burst, window) for key, starts in began.items() for burst in _bursts(starts, window)]
    return tuple(sorted(troubles, key=lambda trouble: (-trouble.nodes, trouble.domain, trouble.fault_class)))


def shared_trouble(
    situation: Situation, policy: Policy, fault_class: FaultClass, *, since: datetime, now: datetime
) -> DomainTrouble | None:
    """Return the trouble that a fault is part of, if it began (`since`) with those of enough other nodes."""
    pools = {pool_domain(situation.pool): situation.pool_nodes}
    for trouble in situation.trouble:
        ours = trouble.fault_class == fault_class and trouble.covers(since)
        if ours and _is_around(trouble, situation) and is_one_cause(trouble, policy, pools, now=now):
            return trouble
    return None


def storm_behind(
    situation: Situation, policy: Policy, fault_class: FaultClass, *, since: datetime
) -> DomainTrouble | None:
    """Return the trouble that a fault was part of, also once its nodes are asked about one by one again."""
    pools = {pool_domain(situation.pool): situation.pool_nodes}
    for trouble in situation.trouble:
        ours = trouble.fault_class == fault_class and trouble.covers(since) and trouble.last_at is not None
        if (
            ours
            and _is_around(trouble, situation)
            and is_one_cause(trouble, policy, pools, now=trouble.last_at or since)
        ):
            return trouble
    return None


def is_one_cause(trouble: DomainTrouble, policy: Policy, pools: Mapping[str, int], *, now: datetime) -> bool:
    """True while so many nodes are taken for one cause. `pools` are the sizes of the pools, by `pool_domain`."""
    breaker = policy.breaker
    if ends_at(trouble, policy, now) < now:
        return False
    if trouble.domain in pools:
        return trouble.nodes > max(breaker.pool_nodes, breaker.pool_share * pools[trouble.domain])
    return trouble.nodes >= breaker.nodes


def ends_at(trouble: DomainTrouble, policy: Policy, now: datetime) -> datetime:
    """When the nodes of a trouble are asked about one by one again, at the latest."""
    return (trouble.last_at or now) + timedelta(seconds=policy.breaker.hold_seconds)


def _is_around(trouble: DomainTrouble, situation: Situation) -> bool:
    return trouble.domain in (*situation.domains, pool_domain(situation.pool))


def _bursts(starts: Iterable[Began], window: timedelta) -> Iterator[list[Began]]:
    """Split where nothing began for longer than `window`."""
    burst: list[Began] = []
    for start in sorted(starts):
        if burst and start[0] - burst[-1][0] > window:
            yield burst
            burst = []
        burst.append(start)
    if burst:
        yield burst


def _trouble(key: tuple[str, str], burst: list[Began], window: timedelta) -> DomainTrouble:
    domain, fault_class = key
    return DomainTrouble(
        domain=domain,
        fault_class=fault_class,
        nodes=_most_at_once(burst, window),
        first_at=burst[0][0],
        last_at=burst[-1][0],
    )


def _most_at_once(burst: list[Began], window: timedelta) -> int:
    """The most nodes within one window, in one pass: a bad minute has a thousand of them."""
    inside: Counter[str] = Counter()
    most = oldest = 0
    for at, node in burst:
        inside[node] += 1
        while at - burst[oldest][0] > window:
            _leave(inside, burst[oldest][1])
            oldest += 1
        most = max(most, len(inside))
    return most


def _leave(inside: Counter[str], node: str) -> None:
    inside[node] -= 1
    if not inside[node]:
        del inside[node]
