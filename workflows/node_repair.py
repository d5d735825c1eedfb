"""The repair of one node, from proposal to return: the table of `daytwo.domain.repair_states`, turned by events.

Each state is one method that returns the event it came to, or `None` to be asked again; between two turns the run may
continue as new. Words of people are heard wherever the repair waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities import signatures as do
    from daytwo.domain import exchange as x
    from daytwo.domain.ladders import rung_of
    from daytwo.domain.proposal import Proposal
    from daytwo.domain.repair_states import Event, after, is_terminal
    from daytwo.domain.vocabulary import Action, Moment, State
    from workflows import details, names, timeouts
    from workflows.claims import read_claim
    from workflows.ending import why
    from workflows.repair_run import Interrupted, RepairRun

SEEN_KEPT = 200
CLAIMS_KEPT = 50
"""Claims that wait to be judged; they go to the next run, whose input may hold 2 MiB."""


@workflow.defn(name=names.NODE_REPAIR)
class NodeRepair(RepairRun):
    """One open repair of one node; its id is the lock on the node."""

    @workflow.init
    def __init__(self, run: x.Run) -> None:
        super().__init__(run)

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
        claimed = await self._call_here(do.CLAIM, self._run.ref)
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
            event = None if is_cancelled_exception(error) else self._stuck(why(error))
        except (asyncio.CancelledError, CancelledError):
            event = None  # the next turn sees the request itself
        if event is Event.DISMISSED:
            event = await self._take_back()
        if event is not None:
            await self._move(event)

    async def _proposed(self) -> Event | None:
        seen = await self._assess()
        if seen.outcome in ("unsettled", "unknown"):
            await self._remind()
            return await self._listen(seen.wait_seconds)
        if seen.outcome == "cleared":
            await self._call(do.LIFT, self._step("lift"))
            return self._say(Event.CLEARED, seen.why)
        if seen.outcome == "revised":
            self._revise(seen.proposal)
            return self._say(Event.REVISED, seen.why)
        self._refresh(seen.proposal)
        await self._announce()
        return await self._listen(self._until_reminder(timeouts.RELOOK_PROPOSED))

    async def _approved(self) -> Event | None:
        if self._run.deciding is None:
            return self._stuck("the approval that led here is not known any more")
        if self._is_expired():
            return self._say(Event.EXPIRED, "the approval was not used in the time that it is valid")
        verdict = await self._authorise(self._run.deciding)
        if verdict is None:
            return self._stuck("the approval that led here cannot be judged")
        self._run.valid_seconds = verdict.valid_seconds
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
        if self._is_expired():
            return self._say(Event.EXPIRED, "the approved moment did not come in the time that an approval is valid")
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
        if seen.outcome == "unsettled" and workflow.patched("clear-is-waited-for"):
            # What was approved has ended by itself, though not for long enough: nobody would approve it now.
            return await self._listen(timeouts.RELOOK_WAITING.total_seconds())
        right = await self._call(do.TAKE_RIGHT, self._step("right"))
        if not right.granted:
            self._run.opens_at = right.opens_at
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
        self._run.verified_run = tests.run_id
        if tests.passed:
            self._run.judged_up_to = tests.up_to
            return self._say(Event.VERIFIED, tests.summary)
        if tests.still_faulty:
            return self._still_faulty(tests.summary)
        return self._stuck(tests.summary)

    async def _rejoining(self) -> Event:
        done = await self._poll(do.REJOIN, self._step("rejoin"))
        return self._still_faulty(done.text) if done.still_faulty else self._say(Event.REJOINED, done.text)

    def _still_faulty(self, text: str) -> Event:
        """What was tried did not help: the next proposal begins above it."""
        action = self._run.approval.action if self._run.approval else Action.VERIFY
        self._run.rung = max(self._run.rung, rung_of(action) if self._run.approval else 0) + 1
        self._run.disturbed = True
        tried = "" if action is Action.VERIFY else f"{action} did not help: "
        return self._say(Event.STILL_FAULTY, tried + text)

    async def _needs_help(self) -> Event | None:
        await self._announce()
        return await self._listen(self._until_reminder(timeouts.REMIND))

    async def _held(self) -> Event | None:
        return await self._listen(timeouts.REMIND.total_seconds())

    async def _take_back(self) -> Event:
        """A dismissal: our marks go before the repair ends, but never off a node to which something was done."""
        if self._run.disturbed:
            return self._stuck(f"dismissed ({self._text}) after something was done to the node: decide how it returns")
        text = self._text
        try:
            done = await self._call_to_the_end(do.LIFT, self._taking_back())
        except ActivityError as error:
            return self._stuck(f"dismissed ({text}), but our marks could not be lifted: {why(error)}")
        if done.interrupted:
            return self._stuck(f"dismissed ({text}) after work was interrupted: decide how it goes on")
        return self._say(Event.DISMISSED, text)

    def _taking_back(self) -> x.StepInput:
        return self._step("lift").model_copy(update={"taking_back": True})

    async def _cancelled(self) -> Event | None:
        """Temporal's own cancel takes the repair back while that is possible, and asks a person when it is not."""
        self._cancel_heeded = True
        self._text = "cancelled in Temporal"
        if self._run.state is State.NEEDS_HELP:
            self._run.note = "cancelled in Temporal: a person decides how it goes on"
            self._show()
            return None
        if after(self._run.state, Event.DISMISSED) and not self._run.interrupted:
            return Event.DISMISSED
        return self._stuck("cancelled in Temporal after work was interrupted")
