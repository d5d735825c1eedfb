"""Clusters, freezes and the audit chain, as people read them. `reads.plane` makes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from daytwo.domain.vocabulary import Frozen


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
