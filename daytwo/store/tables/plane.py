"""What the plane keeps of itself: who runs what, what is away, what is frozen, who did what."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Integer
from sqlmodel import Field, SQLModel

from daytwo.store.tables.columns import as_json, serial, timed


class LeaseRow(SQLModel, table=True):
    """Who runs a loop of the controller. Each write of the loop carries `epoch`; a newer holder has a higher one.

    `stepped_at` is when the loop last ended a step, as of the last renewal.
    """

    __tablename__ = "leases"
    name: str = Field(primary_key=True)
    holder: str
    epoch: int = 1
    expires_at: datetime = timed()
    stepped_at: datetime | None = timed(nullable=True)


class PartRow(SQLModel, table=True):
    """A part that daytwo talks to, as one kind of process (`seen_by`) found it last: since when it answers or is away.

    Written when that changes; while it is away, `tried_at` also at most every few seconds. `daytwo.outages` writes it.
    """

    __tablename__ = "parts"
    part: str = Field(primary_key=True)
    seen_by: str = Field(primary_key=True)
    away: bool = False
    since: datetime = timed()
    error: str = ""
    last_good: datetime | None = timed(nullable=True)
    tried_at: datetime = timed()


class OutageRow(SQLModel, table=True):
    """A time that is over in which a part did not answer."""

    __tablename__ = "outages"
    id: int | None = serial()
    part: str = Field(index=True)
    seen_by: str
    began: datetime = timed()
    ended: datetime = timed(index=True)
    error: str = ""


class FreezeRow(SQLModel, table=True):
    """A stop for every act that has not begun, in `scope`: `*`, `cluster` or `cluster/node`."""

    __tablename__ = "freezes"
    id: int | None = serial()
    scope: str = Field(index=True)
    reason: str
    actor: str
    at: datetime = timed()
    thawed_at: datetime | None = timed(nullable=True)
    thawed_by: str | None = None


class AuditRow(SQLModel, table=True):
    """One link of the audit chain: `hash` covers this row and the hash of the row before."""

    __tablename__ = "audit"
    number: int = Field(
        sa_column=Column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False)
    )
    at: datetime = timed()
    actor: str
    act: str
    subject: str = Field(index=True)
    data: dict[str, Any] = as_json(dict)
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
    at: datetime = timed()


class RestoreRow(SQLModel, table=True):
    """The store was put back to what it was at `taken_at`. Nothing is acted on until it is `settled_at`."""

    __tablename__ = "restores"
    id: int | None = serial()
    taken_at: datetime = timed()
    at: datetime = timed()
    settled_at: datetime | None = timed(nullable=True)
