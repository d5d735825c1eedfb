"""What triage looks at: everything known of one node at one moment, already loaded. Pure values, no I/O."""

from __future__ import annotations

from datetime import datetime

from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Action, Finding, Frozen, NodeRole, State, Workload


class PastRepair(Frozen):
    """A closed repair of this node, newest first in `Situation.history`. `acted` tells whether the act was carried out."""

    repair_id: str
    fault: str | None
    action: Action | None
    rung: int
    outcome: State
    acted: bool
    opened_at: datetime
    closed_at: datetime
    snooze_until: datetime | None = None


class OpenRepair(Frozen):
    """The repair that is open on this node now."""

    repair_id: str
    state: str
    revision: int
    rung: int
    action: Action | None
    contained: bool
    disturbed: bool
    booted_at_approval: str | None = None


class DomainTrouble(Frozen):
    """How many nodes of one domain began to fire one class of fault within the breaker's window."""

    domain: str
    fault_class: str
    nodes: int


class Situation(Frozen):
    """One node, now. `facts` is `None` when the scheduler could not be read: unknown, never healthy."""

    cluster: str
    node: str
    role: NodeRole
    pool: str
    domains: tuple[str, ...]
    expected_gpus: int | None
    boot_id: str | None
    last_heard_at: datetime | None
    facts: NodeFacts | None
    findings: tuple[Finding, ...]
    workloads: tuple[Workload, ...] | None
    history: tuple[PastRepair, ...]
    open_repair: OpenRepair | None
    trouble: tuple[DomainTrouble, ...]
    pool_nodes: int
    pool_contained: int
    policy_revision: int
    survives_reboot: dict[str, bool]
