"""The tables. Temporal is the truth for what is going on; these rows for what was seen, decided and done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    TypeDecorator,
    UniqueConstraint,
)
from sqlmodel import Field, SQLModel


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time in every database; a naive one is refused on the way in."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time; store the others as UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive time {value!r}: times in the store are UTC and aware")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give back the time as UTC, in whatever zone the database keeps or shows it."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _at(*, nullable: bool = False, index: bool = False) -> Any:
    return Field(default=None, sa_column=Column(UtcDateTime(), nullable=nullable, index=index))


def _json(default: type) -> Any:
    return Field(default_factory=default, sa_column=Column(JSON, nullable=False))


def _serial() -> Any:
    # SQLite numbers rows by itself only for a column of type INTEGER.
    return Field(default=None, sa_column=Column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True))


class ClusterRow(SQLModel, table=True):
    """A declared cluster; `definition` is `ClusterDefinition` as JSON, `policy_revision` counts its changes."""

    __tablename__ = "clusters"
    name: str = Field(primary_key=True)
    kind: str
    definition: dict[str, Any] = _json(dict)
    policy_revision: int = 1
    updated_at: datetime = _at()


class NodeRow(SQLModel, table=True):
    """A node: what it should be, what was last heard of it, and whether it is due for a look (`due > judged`).

    `left_at` is when its cluster's definition ceased to name it: from then on it is history, and nothing is done to it.
    """

    __tablename__ = "nodes"
    cluster: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    role: str = "worker"
    pool: str = "default"
    domains: list[str] = _json(list)
    expected_gpus: int | None = None
    due: int = 0
    judged: int = 0
    state: str = "unknown"
    state_since: datetime = _at()
    state_why: str = ""
    boot_id: str | None = None
    identity: dict[str, Any] = _json(dict)
    identity_at: datetime | None = _at(nullable=True)
    inventory: dict[str, Any] = _json(dict)
    agent_version: str | None = None
    kernel_log: str | None = None
    stream: int = 0
    sequence: int = 0
    last_heard_at: datetime | None = _at(nullable=True)
    clock_skew_seconds: float | None = None
    checks: dict[str, str] = _json(dict)
    checks_digest: str | None = None
    facts: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    facts_at: datetime | None = _at(nullable=True)
    held_by: str | None = None
    held_reason: str = ""
    held_at: datetime | None = _at(nullable=True)
    left_at: datetime | None = _at(nullable=True)


class NodeTransitionRow(SQLModel, table=True):
    """A node's state changed; what people call its history."""

    __tablename__ = "node_transitions"
    id: int | None = _serial()
    cluster: str = Field(index=True)
    node: str = Field(index=True)
    from_state: str
    to_state: str
    why: str = ""
    at: datetime = _at()


class NodeTokenRow(SQLModel, table=True):
    """A node's credential for the gateway, stored hashed (SHA-256 of 32 random bytes)."""

    __tablename__ = "node_tokens"
    hash: str = Field(primary_key=True)
    cluster: str
    node: str = Field(index=True)
    created_at: datetime = _at()
    revoked_at: datetime | None = _at(nullable=True)


class ObservationRow(SQLModel, table=True):
    """Something seen once. A kernel record is unique by node, boot and sequence; others by stream and sequence."""

    __tablename__ = "observations"
    __table_args__ = (
        UniqueConstraint("cluster", "node", "boot_id", "kernel_sequence", "fault", "entity", name="one_kernel_record"),
        UniqueConstraint("cluster", "node", "stream", "sequence", name="one_stream_record"),
    )
    id: int | None = _serial()
    cluster: str
    node: str
    fault: str
    entity: str
    status: str
    count: int = 1
    source: str = ""
    boot_id: str | None = None
    kernel_sequence: int | None = Field(default=None, sa_column=Column(BigInteger, nullable=True))
    stream: int | None = None
    sequence: int | None = None
    first_seen_at: datetime = _at()
    seen_at: datetime = _at()
    received_at: datetime = _at(index=True)
    evidence: list[str] = _json(list)
    detail: dict[str, Any] = _json(dict)


class FindingRow(SQLModel, table=True):
    """One fault on one entity of one node: firing or cleared. `judged_up_to` is the last observation a repair cleared.

    `last_stream` and `last_sequence` place the newest record that counted: what a node sends late changes nothing.
    `turns` are the times at which its reading ended, of late; `quiet_since` is set while it flaps and its last reading
    has ended: it goes on as firing (`daytwo.domain.flapping`).
    """

    __tablename__ = "findings"
    __table_args__ = (UniqueConstraint("cluster", "node", "fault", "entity", name="one_finding"),)
    id: int | None = _serial()
    cluster: str
    node: str = Field(index=True)
    fault: str
    entity: str
    status: str = Field(index=True)
    count: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    source: str = ""
    boot_id: str | None = None
    first_seen: datetime = _at()
    last_seen: datetime = _at()
    last_received: datetime = _at()
    cleared_at: datetime | None = _at(nullable=True)
    cleared_by: str | None = None
    last_observation: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    last_stream: int = 0
    last_sequence: int = 0
    judged_up_to: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    evidence: list[str] = _json(list)
    detail: dict[str, Any] = _json(dict)
    turns: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False, server_default="[]"))
    quiet_since: datetime | None = _at(nullable=True)


class RepairRow(SQLModel, table=True):
    """A repair from first proposal to end. `open_key` is `cluster/node` while it is open: at most one per node."""

    __tablename__ = "repairs"
    id: str = Field(primary_key=True)
    cluster: str = Field(index=True)
    node: str = Field(index=True)
    open_key: str | None = Field(default=None, unique=True)
    state: str = "opening"
    state_since: datetime = _at()
    revision: int = 0
    rung: int = 0
    action: str | None = None
    fault: str | None = None
    proposal: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    policy_revision: int = 1
    opened_by: str = "policy"
    why: str = ""
    contained: bool = False
    disturbed: bool = False
    claimed_at: datetime | None = _at(nullable=True)
    right_taken_at: datetime | None = _at(nullable=True)
    stamps: dict[str, str] = _json(dict)
    attention: str = ""
    waiting_for: str = ""
    outcome: str = ""
    opened_at: datetime = _at(index=True)
    closed_at: datetime | None = _at(nullable=True)
    snooze_until: datetime | None = _at(nullable=True)
    informed_at: datetime | None = _at(nullable=True)
    outcome_digest: str | None = None
    missing_since: datetime | None = _at(nullable=True)


class RepairEventRow(SQLModel, table=True):
    """One accepted event of a repair: its timeline. `number` counts within it, so that a retried write is one row."""

    __tablename__ = "repair_events"
    repair_id: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    at: datetime = _at()
    event: str
    from_state: str
    to_state: str
    actor: str = "daytwo"
    text: str = ""
    data: dict[str, Any] = _json(dict)


class DecisionRow(SQLModel, table=True):
    """What somebody decided, before anything acts on it. `request_id` is the asker's: the same one is the same row."""

    __tablename__ = "decisions"
    id: str = Field(primary_key=True)
    request_id: str = Field(unique=True)
    repair_id: str = Field(index=True)
    revision: int
    kind: str
    action: str | None = None
    moment: str = "now"
    actor: str
    channel: str
    verified: bool
    reason: str = ""
    snooze_seconds: int | None = None
    at: datetime = _at()
    status: str = Field(default="pending", index=True)
    status_reason: str = ""
    ended_at: datetime | None = _at(nullable=True)


class IntentRow(SQLModel, table=True):
    """One write to the world: intended, sending, sent, proven or failed. `open_node` allows one unresolved a node."""

    __tablename__ = "intents"
    id: str = Field(primary_key=True)
    repair_id: str = Field(index=True)
    cluster: str
    node: str
    open_node: str | None = Field(default=None, unique=True)
    driver: str
    kind: str
    target: str
    act: dict[str, Any] = _json(dict)
    state: str = "intended"
    tries: int = 0
    deadline: datetime | None = _at(nullable=True)
    sent_at: datetime | None = _at(nullable=True)
    proof: str = ""
    proof_type: str = ""
    error: str = ""
    created_at: datetime = _at()
    updated_at: datetime = _at()


class BmcRefusalRow(SQLModel, table=True):
    """A BMC refused our login. So that no number of restarts locks an account out; gone when it lets us in again."""

    __tablename__ = "bmc_refusals"
    id: int | None = _serial()
    cluster: str = Field(index=True)
    address: str
    at: datetime = _at()


class IncidentRow(SQLModel, table=True):
    """Many nodes of a cluster have one class of fault for one cause. `open_key` is `cluster/class` while it goes on.

    `domains` are the nodes by domain as counted last, `told_domains` those that people were told of. Its id is in the
    marks of the nodes that were contained for it (`daytwo.domain.ids.containment_id`).
    """

    __tablename__ = "incidents"
    id: str = Field(primary_key=True)
    cluster: str
    fault_class: str
    open_key: str | None = Field(default=None, unique=True)
    nodes: int = 0
    domains: dict[str, int] = _json(dict)
    first_at: datetime = _at()
    last_at: datetime = _at()
    opened_at: datetime = _at()
    told_at: datetime | None = _at(nullable=True)
    told_domains: list[str] = _json(list)
    closed_at: datetime | None = _at(nullable=True)
    end_told_at: datetime | None = _at(nullable=True)


class NodeRequestRow(SQLModel, table=True):
    """A question to an agent: open, offered, accepted, then done, failed, withdrawn or lapsed."""

    __tablename__ = "node_requests"
    id: str = Field(primary_key=True)
    cluster: str
    node: str = Field(index=True)
    repair_id: str | None = Field(default=None, index=True)
    kind: str
    arguments: dict[str, Any] = _json(dict)
    state: str = "open"
    created_at: datetime = _at()
    deadline: datetime = _at()
    offered_at: datetime | None = _at(nullable=True)
    accepted_at: datetime | None = _at(nullable=True)
    ended_at: datetime | None = _at(nullable=True)
    boot_id: str | None = None
    result: dict[str, Any] = _json(dict)
    error: str = ""


class EvidenceRow(SQLModel, table=True):
    """What a node's agent collected for a repair before an act that would lose it, or why there is nothing.

    `data` is a tar archive, compressed; `parts` say what is in it, and what could not be had.
    """

    __tablename__ = "evidence"
    id: str = Field(primary_key=True)
    repair_id: str = Field(index=True)
    cluster: str
    node: str
    at: datetime = _at()
    expires_at: datetime = _at(index=True)
    sha256: str = ""
    size: int = 0
    parts: list[dict[str, Any]] = _json(list)
    data: bytes | None = Field(default=None, sa_column=Column(LargeBinary, nullable=True))
    error: str = ""


class LeaseRow(SQLModel, table=True):
    """Who runs a loop of the controller. Each write of the loop carries `epoch`; a newer holder has a higher one.

    `stepped_at` is when the loop last ended a step, as of the last renewal.
    """

    __tablename__ = "leases"
    name: str = Field(primary_key=True)
    holder: str
    epoch: int = 1
    expires_at: datetime = _at()
    stepped_at: datetime | None = _at(nullable=True)


class PartRow(SQLModel, table=True):
    """A part that daytwo talks to, as one kind of process (`seen_by`) found it last: since when it answers or is away.

    Written when that changes; while it is away, `tried_at` also at most every few seconds. `daytwo.outages` writes it.
    """

    __tablename__ = "parts"
    part: str = Field(primary_key=True)
    seen_by: str = Field(primary_key=True)
    away: bool = False
    since: datetime = _at()
    error: str = ""
    last_good: datetime | None = _at(nullable=True)
    tried_at: datetime = _at()


class OutageRow(SQLModel, table=True):
    """A time that is over in which a part did not answer."""

    __tablename__ = "outages"
    id: int | None = _serial()
    part: str = Field(index=True)
    seen_by: str
    began: datetime = _at()
    ended: datetime = _at(index=True)
    error: str = ""


class FreezeRow(SQLModel, table=True):
    """A stop for every act that has not begun, in `scope`: `*`, `cluster` or `cluster/node`."""

    __tablename__ = "freezes"
    id: int | None = _serial()
    scope: str = Field(index=True)
    reason: str
    actor: str
    at: datetime = _at()
    thawed_at: datetime | None = _at(nullable=True)
    thawed_by: str | None = None


class CheckRunRow(SQLModel, table=True):
    """One round of tests on a node: a verification, later an acceptance run."""

    __tablename__ = "check_runs"
    id: str = Field(primary_key=True)
    cluster: str
    node: str = Field(index=True)
    repair_id: str | None = Field(default=None, index=True)
    kind: str = "verify"
    started_at: datetime = _at()
    ended_at: datetime | None = _at(nullable=True)
    passed: bool | None = None
    summary: str = ""


class CheckResultRow(SQLModel, table=True):
    """One test of a run: `passed`, `failed`, `unknown` or `untested`. Unknown is never a pass."""

    __tablename__ = "check_results"
    run_id: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    result: str
    text: str = ""


class AuditRow(SQLModel, table=True):
    """One link of the audit chain: `hash` covers this row and the hash of the row before."""

    __tablename__ = "audit"
    number: int = Field(
        sa_column=Column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False)
    )
    at: datetime = _at()
    actor: str
    act: str
    subject: str = Field(index=True)
    data: dict[str, Any] = _json(dict)
    previous: str
    hash: str


class AuditHeadRow(SQLModel, table=True):
    """The head and count of the audit chain, kept apart from it, so that a removed tail shows."""

    __tablename__ = "audit_heads"
    id: int = Field(default=1, primary_key=True)
    count: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    head: str = ""


class SchemaVersionRow(SQLModel, table=True):
    """Which version of daytwo brought the tables to `revision` first; told to an older one that finds them newer."""

    __tablename__ = "schema_versions"
    revision: str = Field(primary_key=True)
    version: str
    at: datetime = _at()


class RestoreRow(SQLModel, table=True):
    """The store was put back to what it was at `taken_at`. Nothing is acted on until it is `settled_at`."""

    __tablename__ = "restores"
    id: int | None = _serial()
    taken_at: datetime = _at()
    at: datetime = _at()
    settled_at: datetime | None = _at(nullable=True)


_OF_A_FINDING = (ObservationRow.cluster, ObservationRow.node, ObservationRow.fault, ObservationRow.entity)
Index("observations_by_finding", *_OF_A_FINDING)
Index("observations_by_node", ObservationRow.cluster, ObservationRow.node, ObservationRow.id)  # type: ignore[arg-type]  # columns
Index("repairs_by_node", RepairRow.cluster, RepairRow.node, RepairRow.opened_at)  # type: ignore[arg-type]  # columns
