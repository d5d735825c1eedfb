"""The clusters and their nodes: what they should be, what was last heard of them, and how they are spoken to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import Field, SQLModel

from daytwo.store.tables.columns import as_json, serial, timed


class ClusterRow(SQLModel, table=True):
    """A declared cluster; `definition` is `ClusterDefinition` as JSON, `policy_revision` counts its changes."""

    __tablename__ = "clusters"
    name: str = Field(primary_key=True)
    kind: str
    definition: dict[str, Any] = as_json(dict)
    policy_revision: int = 1
    updated_at: datetime = timed()


class NodeRow(SQLModel, table=True):
    """A node: what it should be, what was last heard of it, and whether it is due for a look (`due > judged`).

    `left_at` is when its cluster's definition ceased to name it: from then on it is history, and nothing is done to it.
    """

    __tablename__ = "nodes"
    cluster: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    role: str = "worker"
    pool: str = "default"
    domains: list[str] = as_json(list)
    expected_gpus: int | None = None
    due: int = 0
    judged: int = 0
    state: str = "unknown"
    state_since: datetime = timed()
    state_why: str = ""
    boot_id: str | None = None
    identity: dict[str, Any] = as_json(dict)
    identity_at: datetime | None = timed(nullable=True)
    inventory: dict[str, Any] = as_json(dict)
    agent_version: str | None = None
    kernel_log: str | None = None
    stream: int = 0
    sequence: int = 0
    last_heard_at: datetime | None = timed(nullable=True)
    clock_skew_seconds: float | None = None
    checks: dict[str, str] = as_json(dict)
    checks_digest: str | None = None
    facts: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    facts_at: datetime | None = timed(nullable=True)
    held_by: str | None = None
    held_reason: str = ""
    held_at: datetime | None = timed(nullable=True)
    left_at: datetime | None = timed(nullable=True)


class NodeTransitionRow(SQLModel, table=True):
    """A node's state changed; what people call its history."""

    __tablename__ = "node_transitions"
    id: int | None = serial()
    cluster: str = Field(index=True)
    node: str = Field(index=True)
    from_state: str
    to_state: str
    why: str = ""
    at: datetime = timed()


class NodeTokenRow(SQLModel, table=True):
    """A node's credential for the gateway, stored hashed (SHA-256 of 32 random bytes)."""

    __tablename__ = "node_tokens"
    hash: str = Field(primary_key=True)
    cluster: str
    node: str = Field(index=True)
    created_at: datetime = timed()
    revoked_at: datetime | None = timed(nullable=True)


class NodeRequestRow(SQLModel, table=True):
    """A question to an agent: open, offered, accepted, then done, failed, withdrawn or lapsed."""

    __tablename__ = "node_requests"
    id: str = Field(primary_key=True)
    cluster: str
    node: str = Field(index=True)
    repair_id: str | None = Field(default=None, index=True)
    kind: str
    arguments: dict[str, Any] = as_json(dict)
    state: str = "open"
    created_at: datetime = timed()
    deadline: datetime = timed()
    offered_at: datetime | None = timed(nullable=True)
    accepted_at: datetime | None = timed(nullable=True)
    ended_at: datetime | None = timed(nullable=True)
    boot_id: str | None = None
    result: dict[str, Any] = as_json(dict)
    error: str = ""
