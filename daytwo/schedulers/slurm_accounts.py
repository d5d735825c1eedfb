"""Reads what Slurm's accounting (slurmdbd) has recorded of a node: who drained it, when it booted, which jobs it cost.

Pure; used by the Slurm scheduler. Whatever cannot be read raises `UnknownAnswer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from daytwo.domain.seams import Recorded
from daytwo.schedulers.slurm_text import local_time, unknown

KEPT: Final = "accounting_storage/slurmdbd"
"""The AccountingStorageType with which events and jobs are kept; without it there is nothing to ask."""
EVENT_FIELDS: Final = ("NodeName", "State", "TimeStart", "TimeEnd", "User", "Reason")
JOB_FIELDS: Final = ("JobIDRaw", "State", "Start", "End", "User", "JobName")
INTERRUPTED: Final = frozenset({"REQUEUED", "NODE_FAIL", "BOOT_FAIL"})
"""States in which a job was taken off its nodes by something else than its own end."""


def slurm_time(moment: datetime) -> str:
    """Return a time as Slurm's programs take it: local, in whole seconds."""
    return f"{moment.astimezone():%Y-%m-%dT%H:%M:%S}"


def read_events(text: str) -> tuple[Recorded, ...]:
    """Read `sacctmgr -nP show event` of one node, oldest first."""
    found = []
    for _, state, start, end, user, reason in _rows(text, EVENT_FIELDS, "events of a node"):
        who, while_ = user.partition("(")[0], {"since": local_time(start), "until": local_time(end)}
        found.append(Recorded(what=state.rstrip("*^"), by=who, reason=reason, **while_))
    return _in_order(found)


def read_interrupted(text: str) -> tuple[Recorded, ...]:
    """Read `sacct -nPX -D` of one node: the jobs that were taken off it, oldest first."""
    found = []
    for job, state, start, end, user, name in _rows(text, JOB_FIELDS, "past jobs"):
        word, while_ = state.partition(" ")[0], {"since": local_time(start), "until": local_time(end)}
        if word in INTERRUPTED:
            found.append(Recorded(what=f"job {job} {word}", by=user, reason=name, **while_))
    return _in_order(found)


def _rows(text: str, fields: tuple[str, ...], about: str) -> Iterator[list[str]]:
    for line in filter(None, text.splitlines()):
        # The last field is somebody's words, and may hold the separator.
        row = line.split("|", len(fields) - 1)
        if len(row) != len(fields):
            raise unknown(about, line)
        yield row


def _in_order(found: list[Recorded]) -> tuple[Recorded, ...]:
    return tuple(sorted(found, key=lambda each: (each.since is not None, each.since.timestamp() if each.since else 0)))
