"""A repair as people read it: in a list, whole, and what happened to it since. `reads.repairs` makes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from daytwo.domain.vocabulary import Decision, Frozen
from daytwo.service.models.evidence import EvidenceView


class RepairSummary(Frozen):
    """A repair as a list shows it. `open` is false once it has ended.

    `attention` says why it needs help, `waiting_for` what keeps it from moving: a budget, a window, a second person.
    `action` is what is proposed or, once it is approved, what will be done.
    """

    id: str
    cluster: str
    node: str
    state: str
    state_since: datetime
    open: bool
    revision: int
    action: str | None
    fault: str | None
    title: str
    severity: str
    rung: int
    contained: bool
    disturbed: bool
    attention: str
    waiting_for: str = ""
    outcome: str
    opened_at: datetime
    closed_at: datetime | None


class RepairEvent(Frozen):
    """One line of a repair's timeline."""

    number: int
    at: datetime
    event: str
    from_state: str
    to_state: str
    actor: str
    text: str
    data: dict[str, Any]


class IntentView(Frozen):
    """One write to the world and how far it got."""

    id: str
    driver: str
    kind: str
    target: str
    state: str
    tries: int
    sent_at: datetime | None
    proof: str
    proof_type: str
    error: str
    created_at: datetime
    updated_at: datetime


class CheckResult(Frozen):
    """One test: passed, failed, unknown or untested."""

    name: str
    result: str
    text: str


class CheckRun(Frozen):
    """One round of tests on a node."""

    id: str
    kind: str
    started_at: datetime
    ended_at: datetime | None
    passed: bool | None
    summary: str
    results: tuple[CheckResult, ...]


class RepairDetail(RepairSummary):
    """Everything known of one repair, at most 200 rows of each kind. `message`: the proposal as people are told it.

    `waiting_for` is as it is now; in a list it is as it was looked at last. `would_wait_for` is what an approval of the
    proposal would have to wait for, as far as that is known. `interrupted`: work was, so it cannot be dismissed.
    """

    message: str
    interrupted: bool = False
    would_wait_for: tuple[str, ...] = ()
    proposal: dict[str, Any] | None
    stamps: dict[str, str]
    opened_by: str
    why: str
    snooze_until: datetime | None
    timeline: tuple[RepairEvent, ...]
    decisions: tuple[Decision, ...]
    intents: tuple[IntentView, ...]
    checks: tuple[CheckRun, ...]
    evidence: tuple[EvidenceView, ...]


class RepairProgress(Frozen):
    """What happened to a repair after event number `after`."""

    id: str
    state: str
    revision: int
    open: bool
    outcome: str
    events: tuple[RepairEvent, ...]
