"""Records what `tests/upgrades` migrates: the rows of every table after a real run of the lab, as SQL.

    .venv/bin/python -m scripts.record_store tests/upgrades/schemas/0.1.0.sql

Run it once for each release, from its own tree, and never again: what a released version wrote does not change.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Boolean, DateTime, Table, select
from sqlmodel import SQLModel

import daytwo
from daytwo.controller.leases import acquire
from daytwo.domain.vocabulary import Channel, DecisionKind, Moment, State
from daytwo.lab.definition import CLUSTER
from daytwo.service import freezes
from daytwo.service.decisions import Identity
from daytwo.store import versions
from daytwo.store.tables import BmcRefusalRow, IncidentRow
from scripts.record_histories import dismissed, needs_help, removed, succeeded
from tests.workflows.plane import Plane, a_plane
from tests.workflows.temporal import a_temporal

NODES: Final = 9
SOCKET: Final = "/run/daytwo/lab.sock"
NOT_ROWS_OF_A_RUN: Final = frozenset({"schema_versions", "restores"})
"""What a migration writes by itself, and what only a restore writes."""


async def waiting(plane: Plane) -> str:
    """Approved for when the job on it has ended."""
    node = await plane.busy()
    await plane.broken("xid-154", node=node)
    await plane.approved(node, moment=Moment.WHEN_IDLE)
    await plane.in_state(node, State.WAITING)
    return node


async def held(plane: Plane) -> str:
    """Held while it was proposed."""
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    await plane.decide(node, DecisionKind.HOLD)
    await plane.in_state(node, State.HELD)
    return node


async def acting(plane: Plane) -> str:
    """Its reboot was sent, and is not proven."""
    node = await plane.broken("xid-119", never_comes_back=True)
    await plane.approved(node)
    await plane.until(lambda: ("reboot", "sent") in plane.intents(node), "the reboot was sent", 90)
    return node


async def proposed(plane: Plane) -> str:
    """Contained, and nobody has answered."""
    node = await plane.broken("xid-79")
    await plane.proposed(node)
    return node


def what_no_lab_does(plane: Plane) -> None:
    """A freeze of one node, a lease, a BMC that refused us, an incident that is over."""
    now = datetime.now(UTC)
    bob = Identity(actor="cli:bob", channel=Channel.CLI, verified=True)
    freezes.freeze(plane.store, bob, f"{CLUSTER}/{plane.free[-1]}", reason="cables", now=now)
    acquire(plane.store, "reconcile", holder="control-1:4711", seconds=15, now=now)
    with plane.store.write() as session:
        session.add(BmcRefusalRow(cluster=CLUSTER, address="https://10.0.0.7", at=now))
        hour = now - timedelta(hours=1)
        session.add(
            IncidentRow(
                id="i-20261130-120000-abcde",
                cluster=CLUSTER,
                fault_class="board",
                nodes=3,
                domains={"rack-1": 3},
                first_at=hour,
                last_at=hour,
                opened_at=hour,
                told_at=hour,
                told_domains=["rack-1"],
                closed_at=now,
                end_told_at=now,
            )
        )


async def play(plane: Plane) -> None:
    """Repairs that have ended, side by side, and then those that are open when the rows are read."""
    await asyncio.gather(succeeded(plane), dismissed(plane), removed(plane), needs_help(plane))
    await asyncio.gather(waiting(plane), held(plane), proposed(plane), acting(plane))
    await asyncio.to_thread(what_no_lab_does, plane)


def literal(value: Any, column: Any) -> str:
    """A value as both databases read it."""
    if value is None:
        return "NULL"
    if isinstance(column.type, Boolean):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime) or isinstance(column.type, DateTime):
        value = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
    if isinstance(value, int | float):
        return repr(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "'" + text.replace("'", "''") + "'"


def insert(plane: Plane, table: Table) -> list[str]:
    """The table's rows, in the order of the primary key, as one statement: a row a line."""
    with plane.store.read() as session:
        rows = session.connection().execute(select(table).order_by(*table.primary_key.columns)).all()
    if not rows:
        sys.exit(f"{table.name} has no row: what it holds would not be tested")
    names = ", ".join(column.name for column in table.columns)
    values = [", ".join(map(literal, row, table.columns)) for row in rows]
    return [f"INSERT INTO {table.name} ({names}) VALUES", ",\n".join(f"({line})" for line in values) + ";"]


def dump(plane: Plane) -> str:
    """Everything in the store, without the folder it was recorded in."""
    with plane.store.read() as session:
        revision = versions.found_revision(session.connection())
    tables = [table for table in SQLModel.metadata.sorted_tables if table.name not in NOT_ROWS_OF_A_RUN]
    lines = [line for table in tables for line in insert(plane, table)]
    head = f"-- daytwo {daytwo.__version__}, revision {revision}: written by scripts/record_store.py"
    return "\n".join([head, *lines, ""]).replace(str(plane.settings.state_dir / "lab.sock"), SOCKET)


async def main() -> str:
    """Play, and return the rows."""
    with tempfile.TemporaryDirectory() as root:
        async with a_temporal() as client, a_plane(Path(root), client, nodes=NODES) as plane:
            await play(plane)
            return await asyncio.to_thread(dump, plane)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    Path(sys.argv[1]).write_text(asyncio.run(main()))
