"""How long each kind of activity may take and how it is retried: one named value each, with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio.common import RetryPolicy


@dataclass(frozen=True, slots=True)
class ActivityOptions:
    """Options of one kind of activity. `limit` is the whole time with retries; the caller may give a shorter one.

    A try that is not heard of for `heartbeat` has died with its worker, and is made again: a repair must not stand
    still for a whole `attempt`. Far above what a busy worker's loop is late by, and a try too many does no harm.
    """

    attempt: timedelta
    retry: RetryPolicy
    limit: timedelta | None = None
    heartbeat: timedelta = timedelta(seconds=6)


STORE: Final = ActivityOptions(
    # A store that is away for minutes is an outage to wait out, not a reason to lose a repair.
    attempt=timedelta(seconds=30),
    retry=RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=20)),
)

TELL: Final = ActivityOptions(
    # A channel that is away must not keep a repair from hearing decisions: people are told again after `TELL_AGAIN`.
    attempt=timedelta(seconds=20),
    retry=RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=2),
)

LOOK: Final = ActivityOptions(
    # One read of scheduler and store. slurmctld answers a large site in seconds; a hang must not hold the slot.
    attempt=timedelta(seconds=45),
    retry=RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30)),
)

POLL: Final = ActivityOptions(
    # A condition that is awaited: each try is short and fails with its own delay, so that no worker slot is held.
    # A try may carry out one act: the sender's deadline (10 s), the look after it, and two slow scheduler calls.
    attempt=timedelta(seconds=60),
    retry=RetryPolicy(
        initial_interval=timedelta(seconds=1), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=15)
    ),
)

# How often a state that waits for a person or for a moment looks again by itself, besides being told to.
RELOOK_PROPOSED: Final = timedelta(minutes=1)
RELOOK_WAITING: Final = timedelta(seconds=20)
REMIND: Final = timedelta(hours=24)
TELL_AGAIN: Final = timedelta(minutes=1)
