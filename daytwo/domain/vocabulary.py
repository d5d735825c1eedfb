"""The words of daytwo, as types. Everything else imports them from here, so that a word means one thing everywhere."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from daytwo.faults.model import Action, Clears, Fault, FaultClass, Mode, Severity

__all__ = [
    "Action",
    "Channel",
    "Clears",
    "ClusterKind",
    "Decision",
    "DecisionKind",
    "DecisionStatus",
    "Fault",
    "FaultClass",
    "Finding",
    "FindingStatus",
    "Frozen",
    "Lasting",
    "Mark",
    "Mode",
    "Moment",
    "NodeRole",
    "NodeState",
    "Severity",
    "State",
    "Workload",
]


class Frozen(BaseModel):
    """A value: never changed, compared by content, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Lasting(Frozen):
    """A value that is read back from histories and rows of older and newer versions: unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ClusterKind(StrEnum):
    """One scheduler domain."""

    KUBERNETES = "kubernetes"
    SLURM = "slurm"
    SLURM_ON_KUBERNETES = "slurm-on-kubernetes"
    SIMULATED = "simulated"


class NodeRole(StrEnum):
    """What a machine is for. Only workers are ever repaired automatically."""

    WORKER = "worker"
    LOGIN = "login"
    CONTROLLER = "controller"
    STORAGE = "storage"


class NodeState(StrEnum):
    """What a person sees first about a node. One table maps to it: `daytwo.domain.node_states`."""

    HEALTHY = "healthy"
    BOOTING = "booting"
    UNHEALTHY = "unhealthy"
    PENDING = "pending"
    PAUSED = "paused"
    UNKNOWN = "unknown"


class State(StrEnum):
    """Where a repair stands. The moves between them are data: `daytwo.domain.repair_states`."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    QUARANTINING = "quarantining"
    WAITING = "waiting"
    DRAINING = "draining"
    ACTING = "acting"
    VERIFYING = "verifying"
    REJOINING = "rejoining"
    NEEDS_HELP = "needs-help"
    HELD = "held"
    SUCCEEDED = "succeeded"
    REMOVED = "removed"
    DISMISSED = "dismissed"
    AUTO_RESOLVED = "auto-resolved"
    HANDED_OVER = "handed-over"


class FindingStatus(StrEnum):
    """A finding is firing until something that may clear it (its fault's `clears`) has cleared it."""

    FIRING = "firing"
    CLEARED = "cleared"


class DecisionKind(StrEnum):
    """What a person (or the policy) can say of a repair. The last five answer a repair that needs help."""

    APPROVE = "approve"
    DISMISS = "dismiss"
    HOLD = "hold"
    RELEASE = "release"
    RETRY = "retry"
    RETURN_AFTER_TESTS = "return-after-tests"
    REMOVE = "remove"
    HAND_OVER = "hand-over"


class DecisionStatus(StrEnum):
    """A decision is a row first; it ends accepted, refused (a rule forbids it) or void (it came too late).

    It ends counted where it is the first approval of an action that needs two persons.
    """

    PENDING = "pending"
    ACCEPTED = "accepted"
    COUNTED = "counted"
    REFUSED = "refused"
    VOID = "void"


class Moment(StrEnum):
    """When an approved act may interrupt work."""

    NOW = "now"
    NEXT_CHECKPOINT = "next-checkpoint"
    WHEN_IDLE = "when-idle"


class Channel(StrEnum):
    """The way a decision came in. `temporal` proves no identity; `policy` is automatic approval."""

    CLI = "cli"
    SLACK = "slack"
    CONSOLE = "console"
    TEMPORAL = "temporal"
    POLICY = "policy"


NOT_KNOWN: Final = "not-known"
"""The type of proof of an act of which a restored store does not know what became: that it failed is not known."""


class Mark(Lasting):
    """What we write on a node to say "ours". `text` is one line, safe for a Slurm reason."""

    repair_id: str
    text: str

    @property
    def reason(self) -> str:
        """The one form in which the mark stands in a scheduler: `daytwo <repair id>: <text>`."""
        return f"daytwo {self.repair_id}: {self.text}"[:200]


class Finding(Frozen):
    """One fault on one entity (GPU UUID, PCI address, `node`), as triage sees it. Times are UTC.

    `turns` are when its reading ended, of late.
    """

    id: int
    cluster: str
    node: str
    fault: str
    entity: str
    status: FindingStatus
    count: int = 1
    first_seen: datetime
    last_seen: datetime
    cleared_at: datetime | None = None
    cleared_by: str | None = None
    boot_id: str | None = None
    source: str = ""
    evidence: tuple[str, ...] = ()
    detail: dict[str, Any] = Field(default_factory=dict)
    turns: tuple[datetime, ...] = ()


class Workload(Lasting):
    """A job that an act on the node would interrupt. `elapsed` and `time_limit` are seconds; `None` is not known."""

    id: str
    name: str = ""
    user: str
    account: str = ""
    partition: str = ""
    nodes: tuple[str, ...]
    gpus: int = 0
    elapsed_seconds: int | None = None
    time_limit_seconds: int | None = None
    may_requeue: bool = False
    opted_into_requeue: bool = False
    restarts: int = 0
    state: str = "RUNNING"


class Decision(Frozen):
    """A decision as the workflow and the people see it (the row itself is `daytwo.store.tables.DecisionRow`)."""

    id: str
    request_id: str
    repair_id: str
    revision: int
    kind: DecisionKind
    actor: str
    channel: Channel
    verified: bool
    reason: str = ""
    action: Action | None = None
    moment: Moment = Moment.NOW
    snooze_seconds: int | None = None
    at: datetime
    status: DecisionStatus = DecisionStatus.PENDING
    status_reason: str = ""
