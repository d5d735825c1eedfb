"""What triage looks at: everything known of one node at one moment, already loaded. Pure values, no I/O."""

from __future__ import annotations

from datetime import datetime

from daytwo.domain.machines import Before
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Action, Finding, Frozen, NodeRole, State, Workload


class PastRepair(Frozen):
    """A closed repair of this node, newest first in `Situation.history`. `acted` tells whether the act was carried out.

    `faults` are all that its last proposal stood for, with `fault` in the lead; empty means that one only.
    """

    repair_id: str
    fault: str | None
    action: Action | None
    rung: int
    outcome: State
    acted: bool
    opened_at: datetime
    closed_at: datetime
    snooze_until: datetime | None = None
    faults: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()

    def was_about(self, fault: str) -> bool:
        """True if the repair stood for `fault`, alone or among others."""
        return fault == self.fault or fault in self.faults


class OpenRepair(Frozen):
    """The repair that is open on this node now.

    Once it is `disturbed`, nothing below `rung` is proposed: the standing proposal's, plus one when its act has failed.
    `failed` is what the tests said then, in one sentence.
    """

    repair_id: str
    state: str
    revision: int
    rung: int
    action: Action | None
    contained: bool
    disturbed: bool
    booted_at_approval: str | None = None
    failed: str = ""


class DomainTrouble(Frozen):
    """How many nodes of one domain began to fire one class of fault within the breaker's window, and when.

    Without times it covers every fault of its class.
    """

    domain: str
    fault_class: str
    nodes: int
    first_at: datetime | None = None
    last_at: datetime | None = None

    def covers(self, began: datetime) -> bool:
        """True if a fault that began then is part of it."""
        return (self.first_at is None or self.first_at <= began) and (self.last_at is None or began <= self.last_at)


class Situation(Frozen):
    """One node, now. `facts` is `None` when the scheduler could not be read: unknown, never healthy.

    `able` are the actions that the cluster's drivers can carry out; `None` is all of them. `held` says who holds the
    node, and why. `before` is what the node was when it was whole. `clock_skew_seconds`: by how much its clock is ahead
    of ours.
    """

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
    able: frozenset[Action] | None = None
    held: str = ""
    before: Before | None = None
    clock_skew_seconds: float | None = None
