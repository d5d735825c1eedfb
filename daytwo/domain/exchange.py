"""What the workflow and its activities say to each other: one frozen input and one result for each activity.

They stand in Temporal histories for months: add fields with a default, never rename or remove one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from daytwo.domain.proposal import Proposal
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import Action, DecisionKind, Lasting, Moment, State


class RepairRef(Lasting):
    """Which repair, of which node."""

    repair_id: str
    cluster: str
    node: str


class Approval(Lasting):
    """An approval that was accepted: what may be done, when, and on whose word."""

    decision_id: str
    actor: str
    action: Action
    moment: Moment
    at: datetime
    reason: str = ""


class Run(BaseModel):
    """The whole state of a repair: the workflow's input, carried from run to run when it continues as new."""

    repair_id: str
    cluster: str
    node: str
    state: State = State.PROPOSED
    revision: int = 0
    rung: int = 0
    attempt: int = 0
    event_number: int = 0
    proposal: Proposal | None = None
    deciding: str | None = None
    approval: Approval | None = None
    valid_seconds: float | None = None
    held_from: State | None = None
    disturbed: bool = False
    interrupted: bool = False
    announced_revision: int = 0
    reminder: int = 0
    remind_at: datetime | None = None
    opens_at: datetime | None = None
    attention: str = ""
    note: str = ""
    stamps: dict[str, datetime] = Field(default_factory=dict)
    since: datetime | None = None
    acted_at: datetime | None = None
    verified_run: str = ""
    judged_up_to: int = 0
    snooze_seconds: int | None = None
    pending: list[str] = Field(default_factory=list)
    seen: list[str] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)
    claimed: bool = False
    restarted: bool = False
    runs: int = 1
    # A run takes 10,000 signals and is then deaf, and long histories replay slowly: the next begins long before either.
    events_per_run: int = 2_000

    @property
    def ref(self) -> RepairRef:
        """The repair's identity, as activities take it."""
        return RepairRef(repair_id=self.repair_id, cluster=self.cluster, node=self.node)


class Claim(Lasting):
    """A signal from the Temporal UI, as it came: words of somebody whose identity is not proven."""

    key: str
    name: str
    repair_id: str | None = None
    revision: int | None = None
    who: str = ""
    reason: str = ""
    problem: str = ""


class Claimed(Lasting):
    """Whether this run owns the repair row. It does not when the repair has ended or another one is open."""

    owned: bool
    why: str = ""


class AssessInput(Lasting):
    """Look again. `proposal` is what stands; `disturbed` tells that something was done to the node."""

    ref: RepairRef
    state: State
    revision: int
    rung: int
    disturbed: bool
    proposal: Proposal | None = None
    approved_action: Action | None = None


class Assessment(Lasting):
    """What a fresh look says.

    `stands`: the proposal is still right. `revised`: `proposal` has grown and has the next revision. `cleared`: nothing
    fires that needs a repair, and has not for long enough. `unsettled`: look again in `wait_seconds`.
    `booted`: somebody else booted the node since `proposal` was made. `idle`: no job on it; `None` is not known.
    """

    outcome: Literal["stands", "revised", "cleared", "unsettled", "unknown"]
    why: str = ""
    proposal: Proposal | None = None
    wait_seconds: float = 0.0
    booted: bool = False
    idle: bool | None = None
    marks: Literal["free", "ours", "half-done", "foreign", "unknown"] = "unknown"


class RecordInput(Lasting):
    """One accepted event, and the state of the repair after it. `number` makes a retry the same row."""

    ref: RepairRef
    number: int
    event: Event
    from_state: State
    to_state: State
    at: datetime
    revision: int
    rung: int
    actor: str = "daytwo"
    text: str = ""
    attention: str = ""
    proposal: Proposal | None = None
    approved_action: Action | None = None
    disturbed: bool = False
    stamps: dict[str, datetime] = Field(default_factory=dict)


class AnnounceInput(Lasting):
    """Tell people: of a new revision, or that a repair needs help. `reminder` counts how often they were reminded."""

    ref: RepairRef
    revision: int
    proposal: Proposal | None = None
    attention: str = ""
    reminder: int = 0


class Announced(Lasting):
    """People were told; when to come back while nobody has answered."""

    at: datetime
    again_at: datetime | None = None


class WriteClaimInput(Lasting):
    """Turn a signal from the Temporal UI into a decision row, identity unverified."""

    ref: RepairRef
    claim: Claim
    revision: int


class ClaimWritten(Lasting):
    """The row that was written, or why none could be."""

    decision_id: str | None = None
    problem: str = ""


class AuthoriseInput(Lasting):
    """May this decision take effect, by the rules as they are now?

    `disturbed` and `interrupted` are what cannot be taken back; `deciding` is the approval that `approved` is about.
    """

    ref: RepairRef
    decision_id: str
    state: State
    revision: int
    disturbed: bool
    interrupted: bool
    deciding: str | None = None
    proposed_action: Action | None = None


class Verdict(Lasting):
    """The answer. `received` and `wait` leave the decision's row pending; the others have ended it.

    `received`: it fits the repair, and is judged again in `approved`, by the rules as they are then. `counted`: it is
    the first of two approvals that the action needs.
    """

    status: Literal["received", "accepted", "counted", "refused", "void", "wait"]
    kind: DecisionKind
    actor: str = ""
    reason: str = ""
    why: str = ""
    action: Action | None = None
    moment: Moment = Moment.NOW
    snooze_seconds: int | None = None
    wait_seconds: float = 5.0
    valid_seconds: float | None = None


class StepInput(Lasting):
    """One step on the node. `stage` names it within the repair, so that a retry finds its own intents.

    `taking_back`: the marks are lifted because somebody took the approval back, which only holds while no work was
    interrupted.
    """

    ref: RepairRef
    stage: str
    action: Action
    rung: int = 0
    proposal: Proposal | None = None
    acted_at: datetime | None = None
    disturbed: bool = False
    judged_up_to: int = 0
    taking_back: bool = False
    since: datetime


class StepDone(Lasting):
    """A step that has come true, with what proves it. `interrupted`: running work was taken off the node."""

    text: str
    proof: str = ""
    interrupted: bool = False
    booted_by_another: bool = False
    still_faulty: bool = False


class Right(Lasting):
    """Whether one more node may be out now; `text` says what stands against it, `opens_at` when a window opens."""

    granted: bool
    text: str = ""
    opens_at: datetime | None = None


class Verified(Lasting):
    """The outcome of the tests. Neither passed nor still faulty means that a person must look."""

    passed: bool
    still_faulty: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    summary: str = ""
    run_id: str = ""
    up_to: int = 0


class CloseInput(Lasting):
    """End the repair, in one transaction. It clears the findings that it verified: up to observation `judged_up_to`."""

    event: RecordInput
    judged_up_to: int = 0
    verified_run: str = ""
    snooze_seconds: int | None = None


class Done(Lasting):
    """An activity whose only result is that it has happened."""

    at: datetime


Run.model_rebuild()
