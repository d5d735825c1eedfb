"""A recommendation as it is shown, stored, revised and decided on. Frozen evidence; a revision; nothing to look up later."""

from __future__ import annotations

from datetime import datetime

from daytwo.domain.vocabulary import Action, Frozen, Mode, Moment, Severity, Workload


class Proposal(Frozen):
    """What daytwo wants to do to a node and why. `lost` and `kept` are sentences; `last_observation` is how far it has looked."""

    repair_id: str
    cluster: str
    node: str
    revision: int
    action: Action
    rung: int
    ladder: tuple[Action, ...]
    fault: str
    title: str
    entities: tuple[str, ...]
    severity: Severity
    mode: Mode
    reason: str
    rule: str
    source: str
    rules_fired: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    findings: tuple[int, ...] = ()
    last_observation: int = 0
    workloads: tuple[Workload, ...] = ()
    lost: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    contain: bool = False
    moment: Moment = Moment.NOW
    policy_revision: int = 1
    first_seen: datetime
    at: datetime


def has_grown(old: Proposal, new: Proposal) -> bool:
    """True when `new` asks for more than `old` did: another action, more lost, or an owner who was not asked about.

    Fewer jobs, more evidence or a second companion code are not a reason to ask a person again (operations.md, rule 14).
    """
    owners = {(w.user, w.account) for w in new.workloads} - {(w.user, w.account) for w in old.workloads}
    return new.action != old.action or bool(set(new.lost) - set(old.lost)) or bool(owners)
