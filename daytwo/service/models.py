"""What the service answers: the models of the API, which are also the CLI's JSON. Fields are only ever added."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from daytwo.domain.policy import EffectiveRule
from daytwo.domain.vocabulary import Action, Clears, Decision, FaultClass, Finding, Frozen, Mode, Severity

T = TypeVar("T")


class Page(Frozen, Generic[T]):
    """A bounded answer. `next` is the value of `after` for the following page, `None` at the end."""

    items: tuple[T, ...]
    next: str | None = None


class RepairSummary(Frozen):
    """A repair as a list shows it. `open` is false once it has ended.

    `attention` says why it needs help, `waiting_for` what keeps it from moving: a budget, a window, a second person.
    `action` is what is proposed or, once it is approved, what will be done.
    """

    id: str
    cluster: str
    node: str
    state: str
    state_since: datetime
    open: bool
    revision: int
    action: str | None
    fault: str | None
    title: str
    severity: str
    rung: int
    contained: bool
    disturbed: bool
    attention: str
    waiting_for: str = ""
    outcome: str
    opened_at: datetime
    closed_at: datetime | None


class RepairEvent(Frozen):
    """One line of a repair's timeline."""

    number: int
    at: datetime
    event: str
    from_state: str
    to_state: str
    actor: str
    text: str
    data: dict[str, Any]


class IntentView(Frozen):
    """One write to the world and how far it got."""

    id: str
    driver: str
    kind: str
    target: str
    state: str
    tries: int
    sent_at: datetime | None
    proof: str
    proof_type: str
    error: str
    created_at: datetime
    updated_at: datetime


class CheckResult(Frozen):
    """One test: passed, failed, unknown or untested."""

    name: str
    result: str
    text: str


class CheckRun(Frozen):
    """One round of tests on a node."""

    id: str
    kind: str
    started_at: datetime
    ended_at: datetime | None
    passed: bool | None
    summary: str
    results: tuple[CheckResult, ...]


class EvidencePart(Frozen):
    """One file of an archive, or why it is not in it."""

    name: str
    bytes: int
    truncated: bool
    error: str


class EvidenceView(Frozen):
    """What a node's agent collected for a repair. `size` 0: nothing, and `error` says why."""

    id: str
    at: datetime
    expires_at: datetime
    sha256: str
    size: int
    parts: tuple[EvidencePart, ...]
    error: str


class EvidenceFile(EvidenceView):
    """The same with its archive (.tar.gz), in base64. It is a node's word: open it as you would a stranger's file."""

    archive: str


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


class RepairDetail(RepairSummary):
    """Everything known of one repair, at most 200 rows of each kind. `message`: the proposal as people are told it.

    `waiting_for` is as it is now; in a list it is as it was looked at last. `would_wait_for` is what an approval of the
    proposal would have to wait for, as far as that is known. `interrupted`: work was, so it cannot be dismissed.
    """

    message: str
    interrupted: bool = False
    would_wait_for: tuple[str, ...] = ()
    proposal: dict[str, Any] | None
    stamps: dict[str, str]
    opened_by: str
    why: str
    snooze_until: datetime | None
    timeline: tuple[RepairEvent, ...]
    decisions: tuple[Decision, ...]
    intents: tuple[IntentView, ...]
    checks: tuple[CheckRun, ...]
    evidence: tuple[EvidenceView, ...]


class RepairProgress(Frozen):
    """What happened to a repair after event number `after`."""

    id: str
    state: str
    revision: int
    open: bool
    outcome: str
    events: tuple[RepairEvent, ...]


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


class FaultView(Frozen):
    """One entry of the catalogue of faults."""

    id: str
    title: str
    fault_class: FaultClass
    severity: Severity
    mode: Mode
    clears: Clears
    first_action: Action | None
    new_work_fails: bool
    meaning: str
    source: str
    verify: tuple[str, ...]
    xid: int | None
    family: str
    notes: str


class ClusterView(Frozen):
    """A declared cluster; `nodes` counts its nodes by state."""

    name: str
    kind: str
    policy_revision: int
    updated_at: datetime
    nodes: dict[str, int]


class FreezeView(Frozen):
    """A stop for every act that has not begun. `again`: it stood already when it was asked for."""

    id: int
    scope: str
    reason: str
    actor: str
    at: datetime
    thawed_at: datetime | None
    thawed_by: str | None
    again: bool = False


class AuditView(Frozen):
    """One row of the audit chain."""

    number: int
    at: datetime
    actor: str
    act: str
    subject: str
    data: dict[str, Any]
    hash: str


class AuditVerdict(Frozen):
    """Whether the audit chain is whole; `bad_number` is the first row that does not fit."""

    ok: bool
    count: int
    head: str
    bad_number: int | None
    problem: str


class LoopView(Frozen):
    """A loop of the controller; `alive` while its lease runs. `stepped_at`: when it ended a step, to some seconds."""

    name: str
    holder: str
    epoch: int
    expires_at: datetime
    alive: bool
    stepped_at: datetime | None = None


class PartView(Frozen):
    """A part of the plane, or what it talks to: `store`, `temporal`, `worker`, `controller`, `notifier`,
    `gateway`, `scheduler/<cluster>`, `bmc/<cluster>` and, where one is away, `bmc/<cluster>/<node>`.

    `away` since `since`, which `why` explains; `unknown` where nobody has asked it lately; `starting` since the plane
    did, and too short to be called away. `last_good` is when it last answered, as far as that was written down;
    `tried_at` when it was last found away.
    """

    part: str
    state: Literal["ok", "away", "unknown", "never-seen", "starting"]
    since: datetime | None = None
    why: str = ""
    last_good: datetime | None = None
    tried_at: datetime | None = None


class IncidentView(Frozen):
    """Many nodes that have one class of fault for one cause. `domains` are the nodes by domain."""

    id: str
    cluster: str
    fault_class: str
    nodes: int
    domains: dict[str, int]
    first_at: datetime
    last_at: datetime


class WaitingView(Frozen):
    """An open repair that waits: for people (`proposed`, `held`, `needs-help`), or for what `why` says."""

    id: str
    cluster: str
    node: str
    state: str
    since: datetime
    why: str


class ActsView(Frozen):
    """Writes to schedulers and hardware that are not resolved, by state; `oldest_at` is when one last moved."""

    by_state: dict[str, int]
    oldest_at: datetime | None = None


class Status(Frozen):
    """The installation in one answer. `healthy`: every node is, every loop lives, nothing is frozen or away.

    `away` names the parts that are. While the store is, the rest is empty or `None`: not known. `silent_after_seconds`
    has every limit that a cluster sets for its agents.
    """

    at: datetime
    healthy: bool
    nodes: dict[str, int]
    repairs: dict[str, int]
    firing: int | None
    decisions_pending: int | None
    freezes: tuple[FreezeView, ...]
    loops: tuple[LoopView, ...]
    away: tuple[str, ...] = ()
    parts: tuple[PartView, ...] = ()
    silent_agents: int | None = None
    silent_after_seconds: tuple[float, ...] = ()
    incidents: tuple[IncidentView, ...] = ()
    waiting_for_people: tuple[WaitingView, ...] = ()
    waiting: tuple[WaitingView, ...] = ()
    acts: ActsView | None = None


class NodeHeld(Frozen):
    """A node and who holds it; `decision` is what was decided on its open repair."""

    cluster: str
    node: str
    held_by: str | None
    decision: str | None


class ClusterRemoved(Frozen):
    """A cluster is not looked after any more; `nodes` is how many it had."""

    cluster: str
    nodes: int


class TokensRevoked(Frozen):
    """A node's credentials are gone; `revoked` is how many were good."""

    cluster: str
    node: str
    revoked: int


class RuleView(Frozen):
    """What holds for one fault on one cluster, each value with its origin, and who may approve its first action."""

    cluster: str
    policy_revision: int
    rule: EffectiveRule
    approved_by: tuple[str, ...]
    two_persons: bool
    windows: tuple[str, ...]


class TokenIssued(Frozen):
    """A node's new credential. It is shown once; the store keeps only its hash."""

    cluster: str
    node: str
    token: str
