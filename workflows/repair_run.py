"""How a run of `node-repair` works, whatever its state: it calls, it hears people, it moves. See `NodeRepair`."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities import signatures as do
    from activities.signatures import Signature
    from daytwo.domain import exchange as x
    from daytwo.domain.proposal import Proposal
    from daytwo.domain.repair_states import EVENT_OF, Event, after, is_terminal
    from daytwo.domain.vocabulary import State
    from workflows import details, inputs, timeouts
    from workflows.ending import end, to_the_end, why

In = TypeVar("In")
Out = TypeVar("Out")

STAMPS = {
    Event.APPROVED: "approved",
    Event.RETRIED: "approved",
    Event.DRAINED: "drained",
    Event.ACTED: "acted",
    Event.VERIFIED: "verified",
    Event.REJOINED: "returned",
}


class Interrupted(Exception):
    """What was being waited for ends: a word has become an event, or (`None`) the run is full or cancelled."""

    def __init__(self, event: Event | None) -> None:
        super().__init__(event)
        self.event = event


class RepairRun:
    """The state of a repair and all that its states have in common."""

    def __init__(self, run: x.Run) -> None:
        self._run = run
        self._nudged = False
        self._cancel_heeded = False
        self._verdict: x.Verdict | None = None
        self._text = ""

    # ---- hearing

    async def _listen(self, seconds: float) -> Event | None:
        """Wait for a word, a nudge or the time; returns the event that a word has become."""
        try:
            await workflow.wait_condition(
                lambda: self._is_called() or self._nudged, timeout=timedelta(seconds=max(seconds, 0.05))
            )
        except TimeoutError:
            return None
        self._nudged = False
        return await self._heed()

    def _is_called(self) -> bool:
        """Whatever waits must stop for a word, for Temporal's own cancel, and for the end of this run."""
        return self._has_word() or self._is_newly_cancelled() or self._is_full()

    def _has_word(self) -> bool:
        return bool(self._run.pending or self._run.claims)

    async def _heed(self) -> Event | None:
        """Judge the words that have come in, until one moves the repair; decisions first, which are proven.

        Claims that come while the run is full are left to the next one: who sends them without end must not keep it.
        """
        while self._has_word():
            if not self._run.pending:
                if self._is_full():
                    return None
                await self._write_claim(self._run.claims[0])
                continue
            decision_id = self._run.pending[0]
            verdict = await self._authorise(decision_id)
            self._run.pending.remove(decision_id)
            if verdict is None:
                continue
            if verdict.status in ("accepted", "received"):
                return self._taken(decision_id, verdict)
            self._run.note = f"{verdict.kind} by {verdict.actor}: {verdict.status}, {verdict.why}"
            self._show()
        return None

    def _taken(self, decision_id: str, verdict: x.Verdict) -> Event:
        event = EVENT_OF[verdict.kind]
        if verdict.status == "received":
            self._run.deciding = decision_id
        self._run.snooze_seconds = verdict.snooze_seconds
        self._verdict = verdict
        return self._say(event, verdict.reason)

    async def _write_claim(self, claim: x.Claim) -> None:
        asked = x.WriteClaimInput(ref=self._run.ref, claim=claim, revision=self._run.revision)
        written = await self._call_if_possible(do.WRITE_CLAIM, asked)
        self._run.claims.remove(claim)
        if written is None:
            return
        if written.decision_id and written.decision_id not in self._run.seen:
            self._run.pending.append(written.decision_id)
            self._run.seen.append(written.decision_id)
        self._run.note = written.problem
        self._show()

    def _is_newly_cancelled(self) -> bool:
        # An activity that ends well although it was cancelled swallows the request, so it is asked for here.
        return workflow.cancellation_reason() is not None and not self._cancel_heeded

    # ---- calling

    async def _call(self, what: Signature[In, Out], arg: In) -> Out:
        return await self._start(what, arg)

    async def _call_if_possible(self, what: Signature[In, Out], arg: In) -> Out | None:
        """Call what may be impossible for good: the repair says why, and goes on without it."""
        try:
            return await self._call(what, arg)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._run.note = why(error)
            self._show()
            return None

    async def _call_to_the_end(self, what: Signature[In, Out], arg: In) -> Out:
        """Call what must have happened before anything else is heeded, also Temporal's own cancel."""
        return await to_the_end(self._start(what, arg))

    async def _call_here(self, what: Signature[In, Out], arg: In) -> Out:
        """Call within the task that is under way: for a short write that nothing may come before."""
        handle: workflow.ActivityHandle[Out] = workflow.start_local_activity(
            what.name,
            arg,
            result_type=what.result,
            start_to_close_timeout=what.options.attempt,
            retry_policy=what.options.retry,
        )
        return await to_the_end(handle)

    async def _poll(self, what: Signature[In, Out], arg: In) -> Out:
        """Await a condition by retried short tries, and hear people meanwhile.

        The try under way ends before a word is judged: a stop that is written but not yet delivered forbids every send,
        so nothing is sent between the two.
        """
        while True:
            handle = self._start(what, arg)
            try:
                await workflow.wait_condition(partial(self._is_over, handle))
            except asyncio.CancelledError:
                await end(handle)
                raise
            result = await handle if handle.done() else await end(handle)
            event = await self._heed()
            if result is not None and event is None and not self._has_word():
                return result
            if event is not None or self._is_called():
                raise Interrupted(event)

    def _is_over(self, handle: workflow.ActivityHandle[Out]) -> bool:
        return handle.done() or self._is_called()

    def _start(self, what: Signature[In, Out], arg: In) -> workflow.ActivityHandle[Out]:
        handle: workflow.ActivityHandle[Out] = workflow.start_activity(
            what.name,
            arg,
            result_type=what.result,
            start_to_close_timeout=what.options.attempt,
            schedule_to_close_timeout=what.options.limit,
            retry_policy=what.options.retry,
            heartbeat_timeout=what.options.heartbeat,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        return handle

    async def _assess(self) -> x.Assessment:
        self._nudged = False  # what comes from here on may be newer than what the look sees
        return await self._call(do.ASSESS, inputs.assess(self._run))

    async def _authorise(self, decision_id: str) -> x.Verdict | None:
        """The verdict on a decision; none on one that is no row: whoever reaches Temporal may send its id."""
        return await self._call_if_possible(do.AUTHORISE, inputs.authorise(self._run, decision_id))

    async def _announce(self) -> None:
        """Tell people of the revision that stands, and again when its time has come."""
        run = self._run
        new = run.announced_revision < run.revision
        if not new and (run.remind_at is None or workflow.now() < run.remind_at):
            return
        run.reminder = 0 if new else run.reminder + 1
        told = await self._call_if_possible(do.ANNOUNCE, inputs.announce(run))
        if told is None:
            run.reminder -= not new
            run.remind_at = workflow.now() + timeouts.TELL_AGAIN
            return
        run.announced_revision, run.remind_at = run.revision, told.again_at
        run.stamps.setdefault("recommended", workflow.now())

    async def _remind(self) -> None:
        if self._run.announced_revision == self._run.revision:
            await self._announce()

    def _until_reminder(self, at_most: timedelta) -> float:
        """Seconds until people are told again, or `at_most`."""
        at = self._run.remind_at
        return min(at_most, at - workflow.now() if at else at_most).total_seconds()

    def _step(self, stage: str) -> x.StepInput:
        return inputs.step(self._run, stage, workflow.now())

    # ---- moving

    async def _move(self, event: Event) -> None:
        """Write the event down and then be in the state it leads to."""
        run, now = self._run, workflow.now()
        to_state = after(run.state, event, held_from=run.held_from)
        if to_state is None:
            raise ApplicationError(f"{event} is not accepted in {run.state}", non_retryable=True)
        if event in STAMPS:
            run.stamps[STAMPS[event]] = now
        if to_state is State.PROPOSED:
            run.approval = None
        if to_state is State.NEEDS_HELP:
            run.attention, run.revision = self._text, run.revision + 1
        actor, noted = self._verdict.actor if self._verdict else "daytwo", run.note
        recorded = inputs.record(run, event, to_state, now, actor=actor, text=self._text)
        if is_terminal(to_state):
            await self._call_to_the_end(do.CLOSE, inputs.close(run, recorded))
        else:
            await self._call_to_the_end(do.RECORD, recorded)
        run.event_number += 1
        run.held_from = run.state if event is Event.HELD else None
        run.attention = run.attention if to_state is State.NEEDS_HELP else ""
        # A signal that was answered meanwhile keeps its answer.
        run.state, run.since, run.note = to_state, now, "" if run.note == noted else run.note
        run.opens_at = None
        self._verdict = None
        self._show()

    def _say(self, event: Event, text: str) -> Event:
        self._text = text
        return event

    def _stuck(self, why: str) -> Event:
        return self._say(Event.STUCK, why)

    def _revise(self, proposal: Proposal | None) -> None:
        if proposal is None:
            raise ApplicationError("a revision without a proposal", non_retryable=True)
        self._run.proposal, self._run.revision = proposal, proposal.revision
        self._run.stamps.setdefault("detected", proposal.first_seen)

    def _refresh(self, proposal: Proposal | None) -> None:
        """What stands may be told anew under its revision: who approves must not read of jobs that are gone."""
        if proposal is not None:
            self._run.proposal = proposal
            workflow.set_current_details(details.markdown(self._run))

    def _standing(self) -> Proposal:
        if self._run.proposal is None:
            raise ApplicationError("no proposal stands", non_retryable=True)
        return self._run.proposal

    def _approval(self) -> x.Approval:
        if self._run.approval is None:
            raise ApplicationError("no approval stands", non_retryable=True)
        return self._run.approval

    def _is_expired(self) -> bool:
        """True once the approval is older than it may be, counted from the opening of the window that is waited for."""
        run = self._run
        since = run.approval.at if run.state is State.WAITING and run.approval else run.since
        limit = timedelta(seconds=run.valid_seconds) if run.valid_seconds else details.limit_of(run.state)
        return limit is not None and since is not None and workflow.now() > max(since, run.opens_at or since) + limit

    def _is_full(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() > self._run.events_per_run

    def _show(self) -> None:
        """Let the Temporal UI alone tell what is wrong, what is proposed, and the command that approves."""
        workflow.set_current_details(details.markdown(self._run))
        known = workflow.info().typed_search_attributes
        changed = [each for each in details.search_attributes(self._run) if known.get(each.key) != each.value]
        if changed:
            workflow.upsert_search_attributes(changed)
