"""A node as people read it: in a list, whole, and what people have asked for. Made in `reads.nodes`, `reads.pauses`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from daytwo.domain.vocabulary import Finding, Frozen
from daytwo.service.models.repairs import RepairSummary


class SnoozeView(Frozen):
    """Nobody is asked about these faults of a node until then: who dismissed which repair, and why."""

    repair: str
    faults: tuple[str, ...]
    until: datetime
    actor: str
    reason: str


class QuietView(Frozen):
    """A node's agent holds no GPU until then: who asked for it, and why."""

    until: datetime
    actor: str
    reason: str


class QuietAsked(Frozen):
    """A request to an agent to hold no GPU: open, offered, accepted, then done, failed or lapsed.

    `holders` are the other processes that the agent saw with a GPU open; `let_go` is about its own.
    """

    id: str
    cluster: str
    node: str
    state: str
    error: str = ""
    let_go: bool = False
    holders: tuple[str, ...] = ()


class NodeSummary(Frozen):
    """A node as a list shows it; `firing` are the ids of its firing faults, `repair` its open repair.

    `held_by`, `snoozes` and `quiet` are what people have asked for.
    """

    cluster: str
    name: str
    role: str
    pool: str
    state: str
    state_since: datetime
    state_why: str
    last_heard_at: datetime | None
    firing: tuple[str, ...]
    repair: str | None
    held_by: str | None = None
    held_reason: str = ""
    held_at: datetime | None = None
    snoozes: tuple[SnoozeView, ...] = ()
    quiet: QuietView | None = None


class NodeTransition(Frozen):
    """A change of a node's state."""

    from_state: str
    to_state: str
    why: str
    at: datetime


class NodeDetail(NodeSummary):
    """Everything known of one node. `facts` is what its scheduler says, unchanged since `facts_at`.

    Its agent counts as silent when it was not heard for `silent_after_seconds`.
    """

    domains: tuple[str, ...]
    expected_gpus: int | None
    silent_after_seconds: float
    boot_id: str | None
    identity: dict[str, Any]
    inventory: dict[str, Any]
    agent_version: str | None
    kernel_log: str | None
    clock_skew_seconds: float | None
    checks: dict[str, str]
    facts: dict[str, Any] | None
    facts_at: datetime | None
    findings: tuple[Finding, ...]
    transitions: tuple[NodeTransition, ...]
    repairs: tuple[RepairSummary, ...]
