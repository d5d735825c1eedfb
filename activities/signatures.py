"""The activities as the workflows see them: name, input, result and times. No code behind them is imported.

A test holds every entry against the function that is registered under its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from daytwo.domain import exchange as x
from workflows import timeouts
from workflows.timeouts import ActivityOptions

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class Signature(Generic[In, Out]):
    """One activity: its name in histories, its one input, its one result, its times."""

    name: str
    input: type[In]
    result: type[Out]
    options: ActivityOptions


CLAIM: Final = Signature("claim-repair", x.RepairRef, x.Claimed, timeouts.STORE)
ASSESS: Final = Signature("assess", x.AssessInput, x.Assessment, timeouts.LOOK)
RECORD: Final = Signature("record-event", x.RecordInput, x.Done, timeouts.STORE)
ANNOUNCE: Final = Signature("announce", x.AnnounceInput, x.Announced, timeouts.TELL)
WRITE_CLAIM: Final = Signature("write-claim", x.WriteClaimInput, x.ClaimWritten, timeouts.STORE)
AUTHORISE: Final = Signature("authorise", x.AuthoriseInput, x.Verdict, timeouts.STORE)
QUARANTINE: Final = Signature("quarantine", x.StepInput, x.StepDone, timeouts.POLL)
TAKE_RIGHT: Final = Signature("take-right", x.StepInput, x.Right, timeouts.STORE)
DRAIN: Final = Signature("drain", x.StepInput, x.StepDone, timeouts.POLL)
ACT: Final = Signature("act", x.StepInput, x.StepDone, timeouts.POLL)
VERIFY: Final = Signature("verify", x.StepInput, x.Verified, timeouts.POLL)
LIFT: Final = Signature("lift-marks", x.StepInput, x.StepDone, timeouts.POLL)
REJOIN: Final = Signature("rejoin", x.StepInput, x.StepDone, timeouts.POLL)
CLOSE: Final = Signature("close", x.CloseInput, x.Done, timeouts.STORE)

ALL: Final[tuple[Signature[Any, Any], ...]] = (
    CLAIM,
    ASSESS,
    RECORD,
    ANNOUNCE,
    WRITE_CLAIM,
    AUTHORISE,
    QUARANTINE,
    TAKE_RIGHT,
    DRAIN,
    ACT,
    VERIFY,
    LIFT,
    REJOIN,
    CLOSE,
)
