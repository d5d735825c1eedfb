"""What the activities are asked, made from the state of a repair. Pure."""

from __future__ import annotations

from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from daytwo.domain import exchange as x
    from daytwo.domain.repair_states import Event
    from daytwo.domain.vocabulary import Action, State


def assess(run: x.Run) -> x.AssessInput:
    """Look at the node again."""
    return x.AssessInput(
        ref=run.ref,
        state=run.state,
        revision=run.revision,
        rung=run.rung,
        disturbed=run.disturbed,
        proposal=run.proposal,
        approved_action=run.approval.action if run.approval else None,
    )


def authorise(run: x.Run, decision_id: str) -> x.AuthoriseInput:
    """Judge a decision, by the rules as they are now."""
    return x.AuthoriseInput(
        ref=run.ref,
        decision_id=decision_id,
        state=run.state,
        revision=run.revision,
        disturbed=run.disturbed,
        interrupted=run.interrupted,
        deciding=run.deciding if run.state is State.APPROVED else None,
        proposed_action=run.proposal.action if run.proposal else None,
    )


def announce(run: x.Run) -> x.AnnounceInput:
    """Tell people of the revision that stands."""
    return x.AnnounceInput(
        ref=run.ref,
        revision=run.revision,
        proposal=run.proposal,
        attention=run.attention,
        reminder=run.reminder,
    )


def step(run: x.Run, stage: str, now: datetime) -> x.StepInput:
    """One step on the node. The event number makes the stage this one and no other of the repair."""
    return x.StepInput(
        ref=run.ref,
        stage=f"{stage}-{run.event_number}",
        action=run.approval.action if run.approval else Action.VERIFY,
        rung=run.rung,
        proposal=run.proposal,
        acted_at=run.acted_at,
        disturbed=run.disturbed,
        judged_up_to=run.judged_up_to,
        since=run.since or now,
    )


def record(run: x.Run, event: Event, to_state: State, now: datetime, *, actor: str, text: str) -> x.RecordInput:
    """Write down an event and the state that it leads to."""
    return x.RecordInput(
        ref=run.ref,
        number=run.event_number + 1,
        event=event,
        from_state=run.state,
        to_state=to_state,
        at=now,
        revision=run.revision,
        rung=run.rung,
        actor=actor,
        text=text,
        attention=run.attention if to_state is State.NEEDS_HELP else "",
        proposal=run.proposal,
        approved_action=run.approval.action if run.approval else None,
        disturbed=run.disturbed,
        stamps=run.stamps,
    )


def close(run: x.Run, recorded: x.RecordInput) -> x.CloseInput:
    """End the repair with this event."""
    return x.CloseInput(
        event=recorded,
        judged_up_to=run.judged_up_to if recorded.to_state is State.SUCCEEDED else 0,
        verified_run=run.verified_run,
        snooze_seconds=run.snooze_seconds if recorded.to_state is State.DISMISSED else None,
    )
