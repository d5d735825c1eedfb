"""The repair of one node, from proposal to return: the table of `daytwo.domain.repair_states`, turned by events.

Each state is one method that returns the event it came to, or `None` to be asked again; between two turns the run may
continue as new. Words of people are heard wherever the repair waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, RetryState, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities import signatures as do
    from activities.signatures import Signature
    from daytwo.domain import exchange as x
    from daytwo.domain.ladders import rung_of
    from daytwo.domain.proposal import Proposal
    from daytwo.domain.repair_states import EVENT_OF, Event, after, is_terminal
    from daytwo.domain.vocabulary import Action, Moment, State
    from workflows import details, names, timeouts
    from workflows.claims import read_claim

I = TypeVar("I")  # noqa: E741  # input and output, as in activities.signatures
O = TypeVar("O")  # noqa: E741

STAMPS = {
    Event.AUTHORISED: "approved",
    Event.DRAINED: "drained",
    Event.ACTED: "acted",
    Event.VERIFIED: "verified",
    Event.REJOINED: "returned",
}
SEEN_KEPT = 200
CLAIMS_KEPT = 50
"""Claims that wait to be judged; they go to the next run, whose input may hold 2 MiB."""


class Interrupted(Exception):
    """What was being waited for ends: a word has become an event, or (`None`) the run is full or cancelled."""

    def __init__(self, event: Event | None) -> None:
        super().__init__(event)
        self.event = event


@workflow.defn(name=names.NODE_REPAIR)
class NodeRepair:
    """One open repair of one node; its id is the lock on the node."""

    @workflow.init
    def __init__(self, run: x.Run) -> None:
        self._run = run
        self._nudged = False
        self._cancel_heeded = False
        self._verdict: x.Verdict | None = None
        self._text = ""

    @workflow.run
    async def run(self, run: x.Run) -> x.Run:
        """Turn the table until it ends; returns the last state of the run."""
        if not self._run.claimed and not await self._claim():
            return self._run
        self._show()
        while not is_terminal(self._run.state):
            if self._is_full() and not self._is_newly_cancelled():
                await workflow.wait_condition(workflow.all_handlers_finished)
                self._run.runs += 1
                workflow.continue_as_new(self._run)
            await self._turn()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._run

    # ---- words from outside

    @workflow.update(name=names.DECIDE)
    def decide(self, decision_id: str) -> str:
        """Take in the id of a decision row; what becomes of it is written on the row."""
        self._run.pending.append(decision_id)
        self._run.seen = [*self._run.seen, decision_id][-SEEN_KEPT:]
        return self._run.state

    @decide.validator
    def _may_decide(self, decision_id: str) -> None:
        if decision_id in self._run.seen:
            raise ApplicationError(f"decision {decision_id} was delivered before", type="Stale")
        if is_terminal(self._run.state):
            raise ApplicationError(f"repair {self._run.repair_id} has ended: {self._run.state}", type="Stale")

    @workflow.signal(dynamic=True)
    def hear(self, name: str, arguments: Sequence[RawValue]) -> None:
        """Take any signal without ever raising: `look-again`, or a claim made in the Temporal UI."""
        if name == names.LOOK_AGAIN:
            self._nudged = True
            return
        info = workflow.info()
        key = f"{info.run_id}:{info.get_current_history_length()}:{len(self._run.claims)}"
        claim = read_claim(key, name, arguments, workflow.payload_converter())
        if claim.problem or len(self._run.claims) >= CLAIMS_KEPT:
            self._run.note = claim.problem or f"signal {name!r} was not read: {CLAIMS_KEPT} others wait; send it again"
            workflow.set_current_details(details.markdown(self._run))
            return
        self._run.claims.append(claim)

    @workflow.query(name=names.STATE_QUERY)
    def state(self) -> x.Run:
        """The whole state of the repair."""
        return self._run

    @workflow.query(name=names.PROPOSAL_QUERY)
    def proposal(self) -> Proposal | None:
        """The revision that stands."""
        return self._run.proposal

    # ---- one turn

    async def _claim(self) -> bool:
        claimed = await self._call(do.CLAIM, self._run.ref)
        self._run.claimed = claimed.owned
        self._run.since = workflow.now()
        if not claimed.owned:
            self._run.note = claimed.why
        return claimed.owned

    async def _turn(self) -> None:
        steps: dict[State, Callable[[], Awaitable[Event | None]]] = {
            State.PROPOSED: self._proposed,
            State.APPROVED: self._approved,
            State.QUARANTINING: self._quarantining,
            State.WAITING: self._waiting,
            State.DRAINING: self._draining,
            State.ACTING: self._acting,
            State.VERIFYING: self._verifying,
            State.REJOINING: self._rejoining,
            State.NEEDS_HELP: self._needs_help,
            State.HELD: self._held,
        }
        self._text = ""
        try:
            event = await (self._cancelled() if self._is_newly_cancelled() else steps[self._run.state]())
        except Interrupted as word:
            event = word.event
        except ActivityError as error:
            event = None if is_cancelled_exception(error) else self._stuck(_why(error))
        except (asyncio.CancelledError, CancelledError):
            event = None  # the next turn sees the request itself
        if event is Event.DISMISSED:
            event = await self._take_back()
        if event is not None:
            await self._move(event)

    async def _proposed(self) -> Event | None:
        seen = await self._assess()
        if seen.outcome in ("unsettled", "unknown"):
            return await self._listen(seen.wait_seconds)
        if seen.outcome == "cleared":
            await self._call(do.LIFT, self._step("lift"))
            return self._say(Event.CLEARED, seen.why)
        if seen.outcome == "revised":
            self._revise(seen.proposal)
            return self._say(Event.REVISED, seen.why)
        await self._announce()
        return await self._listen(timeouts.RELOOK_PROPOSED.total_seconds())

    async def _approved(self) -> Event | None:
        if self._run.deciding is None:
            return self._stuck("the approval that led here is not known any more")
        if self._outlasted(self._run.state):
            return self._say(Event.EXPIRED, "the approval was not used for 24 h")
        verdict = await self._authorise(self._run.deciding)
        if verdict.status == "wait":
            self._run.note = verdict.why
            self._show()
            return await self._listen(verdict.wait_seconds)
        if verdict.status != "accepted":
            return self._say(Event.NOT_AUTHORISED, verdict.why)
        return await self._authorised(self._run.deciding, verdict)

    async def _authorised(self, decision_id: str, verdict: x.Verdict) -> Event:
        action = verdict.action or self._standing().action
        self._run.approval = x.Approval(
            decision_id=decision_id,
            actor=verdict.actor,
            action=action,
            moment=verdict.moment,
            at=workflow.now(),
            reason=verdict.reason,
        )
        self._verdict = verdict
        if action.touches_nothing:
            if not self._run.disturbed:
                await self._call(do.LIFT, self._step("lift"))
            return self._say(Event.NOTED, f"{action}: noted, nothing is done to the node")
        return self._say(Event.AUTHORISED, f"{action}, {verdict.moment}: {verdict.reason}".rstrip(": "))

    async def _quarantining(self) -> Event:
        done = await self._poll(do.QUARANTINE, self._step("quarantine"))
        return self._say(Event.QUARANTINED, done.text)

    async def _waiting(self) -> Event | None:
        if self._outlasted(self._run.state):
            return self._say(Event.EXPIRED, "the approved moment did not come within 24 h")
        seen = await self._assess()
        event = self._changed_meanwhile(seen)
        if event is Event.CLEARED:
            await self._call(do.LIFT, self._step("lift"))
        if event is not None:
            return event
        approval = self._approval()
        if approval.action is Action.VERIFY:
            return self._say(Event.NOTHING_TO_DO, "only tests are asked for")
        if seen.outcome == "unknown" or (approval.moment is not Moment.NOW and not seen.idle):
            return await self._listen(timeouts.RELOOK_WAITING.total_seconds())
        right = await self._call(do.TAKE_RIGHT, self._step("right"))
        if not right.granted:
            return await self._listen(timeouts.RELOOK_WAITING.total_seconds())
        return self._say(Event.MOMENT_CAME, right.text)

    def _changed_meanwhile(self, seen: x.Assessment) -> Event | None:
        if seen.booted and not self._run.disturbed:
            return self._say(Event.BOOTED_BY_ANOTHER, "somebody else has booted the node")
        if seen.marks in ("free", "foreign", "half-done"):
            return self._stuck(f"our marks are not what we wrote ({seen.marks}): {seen.why}")
        if seen.outcome == "cleared":
            return self._say(Event.CLEARED, seen.why)
        if seen.outcome == "revised":
            self._revise(seen.proposal)
            return self._say(Event.STAKES_GREW, seen.why)
        return None

    async def _draining(self) -> Event:
        done = await self._poll(do.DRAIN, self._step("drain"))
        self._run.interrupted = self._run.interrupted or done.interrupted
        if done.booted_by_another:
            return self._say(Event.BOOTED_BY_ANOTHER, done.text)
        self._run.attempt += 1
        self._run.disturbed = True
        return self._say(Event.DRAINED, done.text)

    async def _acting(self) -> Event:
        if self._approval().action is Action.REMOVE:
            return self._say(Event.RETIRED, "retired: stays drained until the inventory takes it")
        done = await self._poll(do.ACT, self._step("act"))
        self._run.acted_at = workflow.now()
        return self._say(Event.ACTED, f"{done.text} ({done.proof})")

    async def _verifying(self) -> Event:
        tests = await self._poll(do.VERIFY, self._step("verify"))
        self._run.verified_run, self._run.judged_up_to = tests.run_id, tests.up_to
        if tests.passed:
            return self._say(Event.VERIFIED, tests.summary)
        if tests.still_faulty:
            return self._still_faulty(tests.summary)
        return self._stuck(tests.summary)

    async def _rejoining(self) -> Event:
        done = await self._poll(do.REJOIN, self._step("rejoin"))
        return self._still_faulty(done.text) if done.still_faulty else self._say(Event.REJOINED, done.text)

    def _still_faulty(self, text: str) -> Event:
        """What was tried did not help: the next proposal begins above it."""
        tried = rung_of(self._run.approval.action) if self._run.approval else 0
        self._run.rung = max(self._run.rung, tried) + 1
        self._run.disturbed = True
        return self._say(Event.STILL_FAULTY, text)

    async def _needs_help(self) -> Event | None:
        await self._announce()
        return await self._listen(timeouts.REMIND.total_seconds())

    async def _held(self) -> Event | None:
        return await self._listen(timeouts.REMIND.total_seconds())

    async def _take_back(self) -> Event:
        """A dismissal: our marks go before the repair ends, but never off a node to which something was done."""
        if self._run.disturbed:
            return self._stuck(f"dismissed ({self._text}) after something was done to the node: decide how it returns")
        text = self._text
        try:
            await self._call(do.LIFT, self._step("lift"))
        except ActivityError as error:
            return self._stuck(f"dismissed ({text}), but our marks could not be lifted: {_why(error)}")
        return self._say(Event.DISMISSED, text)

    def _is_newly_cancelled(self) -> bool:
        # An activity that ends well although it was cancelled swallows the request, so it is asked for here.
        return workflow.cancellation_reason() is not None and not self._cancel_heeded

    async def _cancelled(self) -> Event:
        """Temporal's own cancel takes the repair back while that is possible, and asks a person when it is not."""
        self._cancel_heeded = True
        self._text = "cancelled in Temporal"
        if after(self._run.state, Event.DISMISSED) and not self._run.interrupted:
            return Event.DISMISSED
        return self._stuck("cancelled in Temporal after work was interrupted")

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
        written = await self._call(
            do.WRITE_CLAIM, x.WriteClaimInput(ref=self._run.ref, claim=claim, revision=self._run.revision)
        )
        self._run.claims.remove(claim)
        if written.decision_id and written.decision_id not in self._run.seen:
            self._run.pending.append(written.decision_id)
            self._run.seen.append(written.decision_id)
        self._run.note = written.problem
        self._show()

    # ---- calling

    async def _call(self, what: Signature[I, O], arg: I) -> O:
        return await self._start(what, arg)

    async def _poll(self, what: Signature[I, O], arg: I) -> O:
        """Await a condition by retried short tries, and hear people meanwhile.

        The try under way ends before a word is judged: a stop that is written but not yet delivered forbids every send,
        so nothing is sent between the two.
        """
        while True:
            handle = self._start(what, arg)
            try:
                await workflow.wait_condition(lambda h=handle: h.done() or self._is_called())  # type: ignore[misc]  # bound now
            except asyncio.CancelledError:
                await _end(handle)
                raise
            result = await handle if handle.done() else await _end(handle)
            event = await self._heed()
            if result is not None and event is None and not self._has_word():
                return result
            if event is not None or self._is_called():
                raise Interrupted(event)

    def _start(self, what: Signature[I, O], arg: I) -> workflow.ActivityHandle[O]:
        handle: workflow.ActivityHandle[O] = workflow.start_activity(
            what.name,
            arg,
            result_type=what.result,
            start_to_close_timeout=what.options.attempt,
            schedule_to_close_timeout=what.options.limit,
            retry_policy=what.options.retry,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        return handle

    async def _assess(self) -> x.Assessment:
        run = self._run
        self._nudged = False  # what comes from here on may be newer than what the look sees
        return await self._call(
            do.ASSESS,
            x.AssessInput(
                ref=run.ref,
                state=run.state,
                revision=run.revision,
                rung=run.rung,
                disturbed=run.disturbed,
                proposal=run.proposal,
                approved_action=run.approval.action if run.approval else None,
            ),
        )

    async def _authorise(self, decision_id: str) -> x.Verdict:
        run = self._run
        return await self._call(
            do.AUTHORISE,
            x.AuthoriseInput(
                ref=run.ref,
                decision_id=decision_id,
                state=run.state,
                revision=run.revision,
                disturbed=run.disturbed,
                interrupted=run.interrupted,
                deciding=run.deciding if run.state is State.APPROVED else None,
                proposed_action=run.proposal.action if run.proposal else None,
            ),
        )

    async def _announce(self) -> None:
        run = self._run
        if run.announced_revision >= run.revision:
            return
        await self._call(
            do.ANNOUNCE,
            x.AnnounceInput(ref=run.ref, revision=run.revision, proposal=run.proposal, attention=run.attention),
        )
        run.announced_revision = run.revision
        run.stamps.setdefault("recommended", workflow.now())

    def _step(self, stage: str) -> x.StepInput:
        run = self._run
        return x.StepInput(
            ref=run.ref,
            stage=f"{stage}-{run.event_number}",
            action=run.approval.action if run.approval else Action.VERIFY,
            rung=run.rung,
            proposal=run.proposal,
            acted_at=run.acted_at,
            disturbed=run.disturbed,
            judged_up_to=run.judged_up_to,
            since=run.since or workflow.now(),
        )

    # ---- moving

    async def _move(self, event: Event) -> None:
        """Write the event down and then be in the state it leads to."""
        run, now = self._run, workflow.now()
        to_state = after(run.state, event, held_from=run.held_from)
        if to_state is None:
            raise ApplicationError(f"{event} is not accepted in {run.state}", non_retryable=True)
        if event in STAMPS:
            run.stamps[STAMPS[event]] = now
        if to_state is State.NEEDS_HELP:
            run.attention, run.revision = self._text, run.revision + 1
        record = self._record(event, to_state, now)
        if is_terminal(to_state):
            await self._call(do.CLOSE, self._close(record))
        else:
            await self._call(do.RECORD, record)
        run.event_number += 1
        run.held_from = run.state if event is Event.HELD else None
        run.attention = run.attention if to_state is State.NEEDS_HELP else ""
        run.state, run.since = to_state, now
        self._verdict = None
        self._show()

    def _record(self, event: Event, to_state: State, now: datetime) -> x.RecordInput:
        run = self._run
        return x.RecordInput(
            ref=run.ref,
            number=run.event_number + 1,
            event=event,
            from_state=run.state,
            to_state=to_state,
            at=now,
            revision=run.revision,
            rung=run.rung,
            actor=self._verdict.actor if self._verdict else "daytwo",
            text=self._text,
            attention=run.attention if to_state is State.NEEDS_HELP else "",
            proposal=run.proposal,
            approved_action=None if to_state is State.PROPOSED or not run.approval else run.approval.action,
            disturbed=run.disturbed,
            stamps=run.stamps,
        )

    def _close(self, record: x.RecordInput) -> x.CloseInput:
        run = self._run
        return x.CloseInput(
            event=record,
            judged_up_to=run.judged_up_to if record.to_state is State.SUCCEEDED else 0,
            verified_run=run.verified_run,
            snooze_seconds=run.snooze_seconds if record.to_state is State.DISMISSED else None,
        )

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

    def _standing(self) -> Proposal:
        if self._run.proposal is None:
            raise ApplicationError("no proposal stands", non_retryable=True)
        return self._run.proposal

    def _approval(self) -> x.Approval:
        if self._run.approval is None:
            raise ApplicationError("no approval stands", non_retryable=True)
        return self._run.approval

    def _outlasted(self, state: State) -> bool:
        limit = details.limit_of(state)
        return limit is not None and self._run.since is not None and workflow.now() > self._run.since + limit

    def _is_full(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() > self._run.events_per_run

    def _show(self) -> None:
        """Let the Temporal UI alone tell what is wrong, what is proposed, and the command that approves."""
        workflow.set_current_details(details.markdown(self._run))
        workflow.upsert_search_attributes(details.search_attributes(self._run))


async def _end(handle: workflow.ActivityHandle[O]) -> O | None:
    """Cancel an activity and wait until no try of it runs; its result, if it came true after all."""
    handle.cancel()
    try:
        return await handle
    except ActivityError as error:
        # A try that ended with "not yet" after the cancel has failed, but only for not being tried again.
        if is_cancelled_exception(error) or error.retry_state is RetryState.CANCEL_REQUESTED:
            return None
        raise


def _why(error: ActivityError) -> str:
    cause = error.cause
    return str(cause.message if isinstance(cause, ApplicationError) else cause or error)
