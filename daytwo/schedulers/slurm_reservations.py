"""What the reservations of a Slurm node mean to others than their owners. Pure; used by the Slurm scheduler.

The list of reservations is the truth: the flag MAINTENANCE of a node follows it only after seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from daytwo.schedulers.slurm_marks import is_ours
from daytwo.schedulers.slurm_text import SlurmReservation

MAINTENANCE: Final = "MAINT"


def has_begun(reservation: SlurmReservation, now: datetime) -> bool:
    """True once it holds its nodes; also where its start cannot be read."""
    return reservation.start is None or reservation.start <= now


def maintained(held: Sequence[SlurmReservation], now: datetime) -> str:
    """Say who has reserved the node for maintenance that goes on now; empty if nobody but us."""
    now_on = [each for each in _others(held) if MAINTENANCE in each.flags and has_begun(each, now)]
    return "; ".join(f"{each.who} has reserved it for maintenance: {each.name}{_until(each)}" for each in now_on)


def reserved(held: Sequence[SlurmReservation], now: datetime) -> str:
    """Say for whom the node is reserved otherwise now, or will be; empty if for nobody."""
    others = [each for each in _others(held) if not (MAINTENANCE in each.flags and has_begun(each, now))]
    return "; ".join(_says(each, now) for each in others)


def _others(held: Sequence[SlurmReservation]) -> list[SlurmReservation]:
    return [each for each in held if not is_ours(each.name)]


def _says(each: SlurmReservation, now: datetime) -> str:
    what = "for maintenance by" if MAINTENANCE in each.flags else "for"
    if has_begun(each, now):
        return f"reserved {what} {each.who}: {each.name}{_until(each)}"
    return f"reserved {what} {each.who}: {each.name} from {_at(each.start)}{_until(each)}{_short(each)}"


def _short(each: SlurmReservation) -> str:
    """What a reservation to come lacks as long as this node is out."""
    return f"; {len(each.nodes) - 1} of its {len(each.nodes)} nodes are left without this one"


def _until(each: SlurmReservation) -> str:
    return f", until {_at(each.end)}" if each.end else ""


def _at(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M}Z" if when else "a time that cannot be read"
