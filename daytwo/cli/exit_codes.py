"""The published exit codes; docs/exit-codes.md and `daytwo help exit-codes` both show this table."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
FORBIDDEN: Final = 4
CHANGED: Final = 5
TIMED_OUT: Final = 6
UNREACHABLE: Final = 7
UNHEALTHY: Final = 8
TOO_NEW: Final = 9
AWAY: Final = 10
INTERRUPTED: Final = 130

MEANING: Final = {
    OK: "Done. For `repairs approve`: the decision was accepted. For `repairs watch`: the repair succeeded.",
    FAILED: "Failed, or the repair that was watched ended otherwise than in success, or the audit chain is broken, "
    "or the question was answered with no.",
    USAGE: "Wrong usage or bad input; the message names the option or field, what was found and what is allowed.",
    NOT_FOUND: "There is no such node, cluster, repair, fault, freeze or subject of the audit.",
    FORBIDDEN: "A rule forbids it: role or policy; a decision was refused. For `up`: a port or the folder is taken.",
    CHANGED: "It has changed meanwhile: another revision, a closed repair. A decision no longer fits the repair. "
    "Or it is so already: a held node is not held again, nor one released that nobody holds.",
    TIMED_OUT: "Waited for as long as was asked (`--timeout`), and it had not ended; it goes on. "
    "An approval during a freeze waits so.",
    UNREACHABLE: "The service does not answer, or what it needs does not. The same command may succeed later.",
    UNHEALTHY: "`status --exit-status`: something is not healthy.",
    TOO_NEW: "The store, or a backup, was written by a newer version of daytwo; the message names both versions.",
    AWAY: "`status`: a part of the plane, or what it talks to, does not answer; the answer names it and since when.",
    INTERRUPTED: "Stopped by Ctrl-C.",
}


def as_text() -> str:
    """One line a code."""
    return "\n".join(f"{code:>4}  {meaning}" for code, meaning in MEANING.items())


def as_markdown() -> str:
    """The table as docs/exit-codes.md carries it."""
    rows = [f"| {code} | {meaning} |" for code, meaning in MEANING.items()]
    return "\n".join(["| Code | Meaning |", "|---:|---|", *rows])
