"""One tree of errors; each class carries the retry decision and, for people, an exit code and an HTTP status.

DaytwoError
├── TryAgain                  retryable: the world was not ready, nothing is known to be wrong
│   ├── NotYet                a poll that has not come true; retried after `delay_seconds`
│   ├── Unreachable           a peer is away or hangs
│   └── UnknownAnswer         a peer answered something that cannot be read: unknown, never "empty"
└── Final                     not retryable: somebody must change something first
    ├── BadInput              names the field, what was found and what is allowed
    ├── NotFound              node, cluster, repair, decision, revision
    ├── Refused               a rule forbids it: role, freeze, budget, policy
    ├── Stale                 it held once: old revision, closed repair, changed meanwhile
    ├── Foreign               somebody else's mark is on the node
    ├── Unclear               it cannot be told whether an act was carried out
    ├── TooNew                a newer version of daytwo has written it
    └── Failed                it was tried and did not work

Temporal matches failures on the class name alone, so the names are part of the interface.
"""

from __future__ import annotations

from typing import ClassVar


class DaytwoError(Exception):
    """Root of all errors that daytwo raises on purpose. The message is one sentence a person can act on.

    `why` and `following` (the command to try next) are for people, where what goes for the class would mislead.
    """

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, why: str = "", following: str = "") -> None:
        super().__init__(message)
        self.why = why
        self.following = following


class TryAgain(DaytwoError):
    """Nothing is known to be wrong; the same call may succeed later."""

    retryable = True
    exit_code = 7
    http_status = 503


class NotYet(TryAgain):
    """A condition that is awaited has not come true; look again after `delay_seconds`."""

    exit_code = 6

    def __init__(self, message: str, delay_seconds: float = 2.0) -> None:
        super().__init__(message)
        self.delay_seconds = delay_seconds


class Unreachable(TryAgain):
    """A peer (scheduler, BMC, gateway, Temporal) did not answer."""


class UnknownAnswer(TryAgain):
    """A peer answered, but not in a form that can be read. Unknown is never healthy and never empty."""


class Final(DaytwoError):
    """Retrying the same call cannot help."""


class BadInput(Final):
    """Input that breaks a rule. The message names the field, what was found and what is allowed."""

    exit_code = 2
    http_status = 422


class NotFound(Final):
    """The named thing does not exist."""

    exit_code = 3
    http_status = 404


class Refused(Final):
    """A rule forbids it now."""

    exit_code = 4
    http_status = 403


class Stale(Final):
    """It was about something that has changed meanwhile."""

    exit_code = 5
    http_status = 409


class Foreign(Final):
    """Somebody else's mark is on the node; theirs is never overwritten and never lifted."""

    exit_code = 5
    http_status = 409


class Unclear(Final):
    """Whether an act happened cannot be told; a person must look before anything else is done to the node."""


class TooNew(Final):
    """A newer version of daytwo has written it; an older one must not touch it."""

    exit_code = 9
    http_status = 409


class Failed(Final):
    """It was tried and did not work."""
