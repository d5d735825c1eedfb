"""What was seen wrong: once, as a fault that goes on, and on many nodes for one cause."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from daytwo.store.tables.columns import as_json, serial, timed


class ObservationRow(SQLModel, table=True):
    """Something seen once. A kernel record is unique by node, boot and sequence; others by stream and sequence."""

    __tablename__ = "observations"
    __table_args__ = (
        UniqueConstraint("cluster", "node", "boot_id", "kernel_sequence", "fault", "entity", name="one_kernel_record"),
        UniqueConstraint("cluster", "node", "stream", "sequence", name="one_stream_record"),
        Index("observations_by_finding", "cluster", "node", "fault", "entity"),
        Index("observations_by_node", "cluster", "node", "id"),
    )
    id: int | None = serial()
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
    first_seen_at: datetime = timed()
    seen_at: datetime = timed()
    received_at: datetime = timed(index=True)
    evidence: list[str] = as_json(list)
    detail: dict[str, Any] = as_json(dict)


class FindingRow(SQLModel, table=True):
    """One fault on one entity of one node: firing or cleared. `judged_up_to` is the last observation a repair cleared.

    `last_stream` and `last_sequence` place the newest record that counted: what a node sends late changes nothing.
    `turns` are the times at which its reading ended, of late; `quiet_since` is set while it flaps and its last reading
    has ended: it goes on as firing (`daytwo.domain.flapping`).
    """

    __tablename__ = "findings"
    __table_args__ = (UniqueConstraint("cluster", "node", "fault", "entity", name="one_finding"),)
    id: int | None = serial()
    cluster: str
    node: str = Field(index=True)
    fault: str
    entity: str
    status: str = Field(index=True)
    count: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    source: str = ""
    boot_id: str | None = None
    first_seen: datetime = timed()
    last_seen: datetime = timed()
    last_received: datetime = timed()
    cleared_at: datetime | None = timed(nullable=True)
    cleared_by: str | None = None
    last_observation: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    last_stream: int = 0
    last_sequence: int = 0
    judged_up_to: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    evidence: list[str] = as_json(list)
    detail: dict[str, Any] = as_json(dict)
    turns: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False, server_default="[]"))
    quiet_since: datetime | None = timed(nullable=True)


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
    domains: dict[str, int] = as_json(dict)
    first_at: datetime = timed()
    last_at: datetime = timed()
    opened_at: datetime = timed()
    told_at: datetime | None = timed(nullable=True)
    told_domains: list[str] = as_json(list)
    closed_at: datetime | None = timed(nullable=True)
    end_told_at: datetime | None = timed(nullable=True)
