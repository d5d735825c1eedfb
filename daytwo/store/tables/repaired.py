"""What was proposed, decided, done and tested."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, Index, LargeBinary
from sqlmodel import Field, SQLModel

from daytwo.store.tables.columns import as_json, serial, timed


class RepairRow(SQLModel, table=True):
    """A repair from first proposal to end. `open_key` is `cluster/node` while it is open: at most one per node."""

    __tablename__ = "repairs"
    __table_args__ = (Index("repairs_by_node", "cluster", "node", "opened_at"),)
    id: str = Field(primary_key=True)
    cluster: str = Field(index=True)
    node: str = Field(index=True)
    open_key: str | None = Field(default=None, unique=True)
    state: str = "opening"
    state_since: datetime = timed()
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
    claimed_at: datetime | None = timed(nullable=True)
    right_taken_at: datetime | None = timed(nullable=True)
    stamps: dict[str, str] = as_json(dict)
    attention: str = ""
    waiting_for: str = ""
    outcome: str = ""
    opened_at: datetime = timed(index=True)
    closed_at: datetime | None = timed(nullable=True)
    snooze_until: datetime | None = timed(nullable=True)
    informed_at: datetime | None = timed(nullable=True)
    outcome_digest: str | None = None
    missing_since: datetime | None = timed(nullable=True)


class RepairEventRow(SQLModel, table=True):
    """One accepted event of a repair: its timeline. `number` counts within it, so that a retried write is one row."""

    __tablename__ = "repair_events"
    repair_id: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    at: datetime = timed()
    event: str
    from_state: str
    to_state: str
    actor: str = "daytwo"
    text: str = ""
    data: dict[str, Any] = as_json(dict)


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
    at: datetime = timed()
    status: str = Field(default="pending", index=True)
    status_reason: str = ""
    ended_at: datetime | None = timed(nullable=True)


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
    act: dict[str, Any] = as_json(dict)
    state: str = "intended"
    tries: int = 0
    deadline: datetime | None = timed(nullable=True)
    sent_at: datetime | None = timed(nullable=True)
    proof: str = ""
    proof_type: str = ""
    error: str = ""
    created_at: datetime = timed()
    updated_at: datetime = timed()


class BmcRefusalRow(SQLModel, table=True):
    """A BMC refused our login. So that no number of restarts locks an account out; gone when it lets us in again."""

    __tablename__ = "bmc_refusals"
    id: int | None = serial()
    cluster: str = Field(index=True)
    address: str
    at: datetime = timed()


class EvidenceRow(SQLModel, table=True):
    """What a node's agent collected for a repair before an act that would lose it, or why there is nothing.

    `data` is a tar archive, compressed; `parts` say what is in it, and what could not be had.
    """

    __tablename__ = "evidence"
    id: str = Field(primary_key=True)
    repair_id: str = Field(index=True)
    cluster: str
    node: str
    at: datetime = timed()
    expires_at: datetime = timed(index=True)
    sha256: str = ""
    size: int = 0
    parts: list[dict[str, Any]] = as_json(list)
    data: bytes | None = Field(default=None, sa_column=Column(LargeBinary, nullable=True))
    error: str = ""


class CheckRunRow(SQLModel, table=True):
    """One round of tests on a node: a verification, later an acceptance run."""

    __tablename__ = "check_runs"
    id: str = Field(primary_key=True)
    cluster: str
    node: str = Field(index=True)
    repair_id: str | None = Field(default=None, index=True)
    kind: str = "verify"
    started_at: datetime = timed()
    ended_at: datetime | None = timed(nullable=True)
    passed: bool | None = None
    summary: str = ""


class CheckResultRow(SQLModel, table=True):
    """One test of a run: `passed`, `failed`, `unknown` or `untested`. Unknown is never a pass."""

    __tablename__ = "check_results"
    run_id: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    result: str
    text: str = ""
