"""What a scheduler says of its nodes comes in: facts are kept, others' drains become findings. For the watch loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlmodel import Session, col, select

from daytwo.domain.others_hands import is_switched_off, remembering
from daytwo.domain.seams import NodeFacts, Ownership
from daytwo.domain.vocabulary import FindingStatus
from daytwo.faults.catalogue import DRAINED_BY_PERSON
from daytwo.intake.findings import Effect
from daytwo.intake.hands import OF_HANDS, ended, limits_of, of_hands
from daytwo.intake.observations import NODE, Guard, Observation, observe_in
from daytwo.store.engine import Store
from daytwo.store.locks import lock_nodes
from daytwo.store.tables import FindingRow, NodeRow

DRAINED: Final = "slurm-drained"
DOWN: Final = "slurm-down"
FROM_FACTS: Final = (DRAINED, DRAINED_BY_PERSON, DOWN)
SOURCE: Final = "scheduler"

Wanted = Mapping[str, dict[str, Any]]
News = tuple[str, FindingStatus, dict[str, Any]]


def observe_facts(
    store: Store,
    cluster: str,
    facts: Sequence[NodeFacts],
    *,
    now: datetime,
    guard: Guard | None = None,
    restarted: bool | None = None,
    hears_all: bool = True,
) -> tuple[str, ...]:
    """Keep a whole answer of the cluster's scheduler, and return the names of the nodes of which anything changed.

    A declared node that the answer leaves out has unknown facts from now on. Nodes that are not declared are ignored.
    An answer in which nothing changed takes no lock and writes nothing. `restarted` says whether the scheduler's
    controller was started again since the answer before; `None` is not known. `hears_all` is False while that start is
    so young that it cannot know which nodes are silent: no node is found down then (operations.md, rule 20).
    """
    by_name = {each.node: each for each in facts}
    with store.read() as session:
        by_name = _remembering(session, cluster, by_name)
        changed = _changed(session, cluster, by_name, hears_all)
    if not changed:
        return ()
    with store.write() as session:
        if guard:
            guard(session)
        rows = lock_nodes(session, cluster, changed)
        findings = _findings(session, cluster)
        seen = {name: (row, by_name.get(name), findings.get(name, {})) for name, row in sorted(rows.items())}
        keep = partial(_one, session, now=now, restarted=restarted, hears_all=hears_all)
        return tuple(name for name, each in seen.items() if keep(*each))


def _one(
    session: Session,
    row: NodeRow,
    facts: NodeFacts | None,
    findings: Mapping[str, FindingRow],
    *,
    now: datetime,
    restarted: bool | None,
    hears_all: bool,
) -> bool:
    """Keep the facts of one node, and make its findings follow them. True if anything changed."""
    hands = of_hands(session, row, facts, restarted=restarted) if facts else []
    kept = _keep(row, facts, now)
    return _follow(session, row.cluster, facts, findings, hands=hands, now=now, hears_all=hears_all) or kept


def _over(session: Session, cluster: str, facts: NodeFacts, findings: Mapping[str, FindingRow]) -> list[News]:
    """The findings on others' acts that are over."""
    firing = any(findings[fault].status == FindingStatus.FIRING for fault in OF_HANDS if fault in findings)
    over = ended(facts, findings, limits_of(session, cluster)) if firing else []
    return [(fault, FindingStatus.CLEARED, {}) for fault in over]


def facts_unknown(store: Store, cluster: str, *, now: datetime, guard: Guard | None = None) -> tuple[str, ...]:
    """The scheduler cannot be read: its facts are unknown, findings stay. Returns the nodes that changed."""
    with store.write() as session:
        if guard:
            guard(session)
        rows = [row for row in lock_nodes(session, cluster).values() if row.facts is not None]
        return tuple(sorted(row.name for row in rows if _keep(row, None, now)))


def _nodes(session: Session, cluster: str) -> list[NodeRow]:
    return list(session.exec(select(NodeRow).where(NodeRow.cluster == cluster).order_by(col(NodeRow.name))))


def _remembering(session: Session, cluster: str, by_name: Mapping[str, NodeFacts]) -> dict[str, NodeFacts]:
    """What is said of nodes that are out, with what is stored of them in mind."""
    out = [name for name, facts in by_name.items() if facts.drained_by in ("person", "scheduler")]
    theirs = (NodeRow.cluster == cluster, col(NodeRow.name).in_(out))
    stored = {name: facts for name, facts in session.exec(select(NodeRow.name, NodeRow.facts).where(*theirs)) if facts}
    seen = {name: remembering(NodeFacts.model_validate(facts), by_name[name]) for name, facts in stored.items()}
    return {**by_name, **seen}


def _findings(session: Session, cluster: str) -> dict[str, dict[str, FindingRow]]:
    query = select(FindingRow).where(FindingRow.cluster == cluster, col(FindingRow.fault).in_((*FROM_FACTS, *OF_HANDS)))
    found: dict[str, dict[str, FindingRow]] = {}
    for row in session.exec(query):
        found.setdefault(row.node, {})[row.fault] = row
    return found


def _changed(session: Session, cluster: str, by_name: Mapping[str, NodeFacts], hears_all: bool) -> set[str]:
    findings = _findings(session, cluster)
    return {
        row.name
        for row in _nodes(session, cluster)
        if _told(row.facts) != _told(_stored(by_name.get(row.name)))
        or (row.name in by_name and _news(by_name[row.name], findings.get(row.name, {}), hears_all))
        or (row.name in by_name and _over(session, cluster, by_name[row.name], findings.get(row.name, {})))
    }


def _stored(facts: NodeFacts | None) -> dict[str, Any] | None:
    return None if facts is None else facts.model_dump(mode="json")


def _told(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The facts without the time of reading, which alone is no change."""
    return None if stored is None else {name: value for name, value in stored.items() if name != "at"}


def _keep(row: NodeRow, facts: NodeFacts | None, now: datetime) -> bool:
    stored = _stored(facts)
    if _told(row.facts) == _told(stored):
        return False
    row.facts, row.facts_at = stored, now
    row.due += 1
    return True


def _wanted(facts: NodeFacts) -> Wanted:
    """The findings that these facts amount to, with their details. Our own marks are none."""
    drain = {"reason": facts.reason, "reason_by": facts.reason_by, "states": "+".join(facts.states)}
    if facts.drained_by == "person":
        return {DRAINED_BY_PERSON: drain}
    wanted: dict[str, dict[str, Any]] = {}
    if facts.drained_by == "scheduler":
        wanted[DRAINED] = drain
    if _is_down(facts):
        wanted[DOWN] = drain
    return wanted


def _is_down(facts: NodeFacts) -> bool:
    """Down by itself: during a boot, or under our marks, a node is expected to be away.

    A slurmctld that was started without its state never calls a node down that it has not heard: it stays UNKNOWN.
    """
    ours = facts.ownership in (Ownership.OURS, Ownership.HALF_DONE)
    down = "DOWN" in facts.states or ("UNKNOWN" in facts.states and not facts.responding)
    return down and not facts.rebooting and not ours


def _is_lost_sight_of(facts: NodeFacts) -> bool:
    """Silent, and not called down (yet), as all are after a start of slurmctld: that is no return."""
    ours = facts.ownership in (Ownership.OURS, Ownership.HALF_DONE)
    expected = facts.rebooting or ours or is_switched_off(facts)
    return not facts.responding and "DOWN" not in facts.states and not expected


def _news(facts: NodeFacts, findings: Mapping[str, FindingRow], hears_all: bool) -> list[News]:
    """What has to be observed so that the findings agree with the facts."""
    wanted = _wanted(facts)
    of_silence = {DOWN} if "DRAIN" in facts.states else {DOWN, DRAINED}
    muted = set() if hears_all else of_silence
    kept = of_silence if _is_lost_sight_of(facts) else set()
    fires = [
        (fault, FindingStatus.FIRING, detail)
        for fault, detail in wanted.items()
        if fault not in muted and _is_news(detail, facts, findings.get(fault))
    ]
    firing = [fault for fault in FROM_FACTS if fault in findings and findings[fault].status == FindingStatus.FIRING]
    gone = [fault for fault in firing if fault not in wanted and fault not in kept]
    return fires + [(fault, FindingStatus.CLEARED, {}) for fault in gone]


def _is_news(detail: Mapping[str, Any], facts: NodeFacts, finding: FindingRow | None) -> bool:
    if finding is None:
        return True
    if finding.status == FindingStatus.FIRING:
        return _reason(detail) != _reason(finding.detail)
    # A reading from before the finding was cleared, by a repair that closed meanwhile, says nothing of now.
    return finding.cleared_at is None or facts.at > finding.cleared_at


def _reason(detail: Mapping[str, Any]) -> tuple[object, object]:
    return detail.get("reason"), detail.get("reason_by")


def _follow(
    session: Session,
    cluster: str,
    facts: NodeFacts | None,
    findings: Mapping[str, FindingRow],
    *,
    hands: Sequence[Observation],
    now: datetime,
    hears_all: bool,
) -> bool:
    """Make the findings of one node follow its facts. Unknown facts change no finding."""
    if facts is None:
        return False
    news = [*_news(facts, findings, hears_all), *_over(session, cluster, facts, findings)]
    seen = [*(_observation(cluster, facts, *each) for each in news), *hands]
    return any(effect is not Effect.RECORDED for effect in observe_in(session, seen, now=now))


def _observation(
    cluster: str, facts: NodeFacts, fault: str, status: FindingStatus, detail: dict[str, Any]
) -> Observation:
    return Observation(
        cluster=cluster,
        node=facts.node,
        fault=fault,
        entity=NODE,
        status=status,
        first_seen=facts.reason_at or facts.at,
        last_seen=facts.at,
        source=SOURCE,
        evidence=(facts.reason,) if facts.reason else (),
        detail=detail,
    )
