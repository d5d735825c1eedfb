"""Has a node booted, or has only its clock been set? Pure.

A scheduler computes a boot time from the node's clock and its uptime: set the clock, and the boot time moves. The
kernel's boot id does not; the agent tells it, with what its clock shows.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

SAME_BOOT: Final = timedelta(seconds=2)
"""Slurm's boot time of one boot moves by a second while slurmd starts."""


def moved(before: datetime | None, now: datetime | None) -> bool:
    """True if a boot time is later than before; one that is not known has not moved."""
    return before is not None and now is not None and now - before > SAME_BOOT


def spoke_after(booted: datetime | None, *, heard_at: datetime | None, clock_skew_seconds: float | None) -> bool:
    """True if the agent spoke after a boot that the scheduler tells of, both by the node's own clock.

    If it runs in the boot of before, that boot did not happen. `heard_at` is by our clock, from which the node's
    differs by `clock_skew_seconds`.
    """
    if booted is None or heard_at is None:
        return False
    return heard_at.timestamp() + (clock_skew_seconds or 0.0) > booted.timestamp()


def is_later(booted: datetime | None, then: datetime, *, clock_skew_seconds: float | None) -> bool:
    """True if a boot, told by the node's clock, came after a moment of our clock."""
    return booted is not None and booted.timestamp() - (clock_skew_seconds or 0.0) > then.timestamp()
