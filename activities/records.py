"""What is written of a repair: claimed, each event, announced, closed."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlmodel import Session

from activities import evidence
from activities import signatures as do
from activities.boundary import implements
from activities.by_policy import asks_a_person
from activities.leaving import end_on_node
from activities.world import World, class_of
from daytwo import repairs, waits
from daytwo.domain.exchange import Announced, AnnounceInput, Claimed, CloseInput, Done, RecordInput, RepairRef
from daytwo.domain.message import Around, as_text, clean, summary_line
from daytwo.domain.policy import Policy
from daytwo.domain.proposal import BOOTS, Proposal
from daytwo.domain.reminding import groups_told, seconds_until_next
from daytwo.domain.vocabulary import Mode, Severity, State
from daytwo.intents import give_up_in
from daytwo.store import audit
from daytwo.store.tables import DecisionRow

TOLD_KEPT = 1_000
"""Notices that this process remembers to have given."""


class RecordActivities:
    """The activities `claim-repair`, `record-event`, `announce` and `close`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._told: dict[tuple[object, ...], None] = {}

    @implements(do.CLAIM)
    async def claim_repair(self, ref: RepairRef) -> Claimed:
        """Take the repair's row for this run."""
        return await self.world.write(lambda s: repairs.claim(s, ref, self.world.now()))

    @implements(do.RECORD)
    async def record_event(self, arg: RecordInput) -> Done:
        """Write an accepted event and the state after it; what is unresolved is given up when a person is asked."""
        await self.world.write(lambda s: _record(s, arg))
        return Done(at=self.world.now())

    @implements(do.CLOSE)
    async def close(self, arg: CloseInput) -> Done:
        """End the repair in one transaction; first what it leaves on the node says how it ends."""
        await end_on_node(self.world, arg)
        await self.world.write(lambda s: repairs.close(s, arg))
        return Done(at=self.world.now())

    @implements(do.ANNOUNCE)
    async def announce(self, arg: AnnounceInput) -> Announced:
        """Tell people of a revision or of a repair that needs help, and again; the policy approves its own here.

        Outside the windows the policy does not approve: it is asked again when one opens.
        """
        policy, now = (await self.world.cluster(arg.ref)).definition.policy, self.world.now()
        severity = arg.proposal.severity if arg.proposal else Severity.CRITICAL
        subject, text, urgent = await self._message(arg)
        to = groups_told(policy, severity, arg.reminder)
        if self._is_untold(arg):
            await self.world.notifier.tell(subject, text, urgent=urgent, to=to)
            self._told[_notice(arg)] = None
        again_at = now + timedelta(seconds=seconds_until_next(policy, severity, arg.reminder))
        await self.world.write(lambda s: repairs.stamp(s, arg.ref.repair_id, "recommended", now))
        if arg.proposal is not None and arg.proposal.action in BOOTS and not arg.reminder:
            await evidence.ask_early(self.world, arg.ref, policy)
        if arg.proposal is None or arg.attention or not _is_automatic(policy, arg.proposal):
            return Announced(at=now, again_at=again_at)
        if shut := policy.closed(arg.proposal.action, class_of(arg.proposal), now):
            await self.world.say_waiting(arg.ref, shut.says)
            return Announced(at=now, again_at=shut.opens_at)
        await self.world.write(lambda s: _approve_by_policy(s, arg, now))
        return Announced(at=now, again_at=again_at)

    def _is_untold(self, arg: AnnounceInput) -> bool:
        """False where the notice went out, and only what had to be written after it did not succeed."""
        while len(self._told) > TOLD_KEPT:
            del self._told[next(iter(self._told))]
        return _notice(arg) not in self._told

    async def _message(self, arg: AnnounceInput) -> tuple[str, str, bool]:
        proposal, now = arg.proposal, self.world.now()
        told = await self.world.read(lambda s: waits.around_now(s, proposal, now)) if proposal else None
        subject, text, urgent = _message(arg, told)
        if not arg.reminder:
            return subject, text, urgent
        waiting = await self.world.waiting(arg.ref)
        head = f"Reminder {arg.reminder}: {waiting or 'nobody has answered'}."
        return f"reminder {arg.reminder}: {subject}", f"{clean(head)}\n{text}", urgent


def _record(session: Session, arg: RecordInput) -> None:
    """A late try of what is recorded already gives nothing up: an act may be under way that came after it."""
    if repairs.record(session, arg) and arg.to_state is State.NEEDS_HELP:
        give_up_in(session, arg.ref.repair_id, arg.attention)


def _notice(arg: AnnounceInput) -> tuple[object, ...]:
    return arg.ref.repair_id, arg.revision, arg.reminder, arg.attention


def _message(arg: AnnounceInput, told: Around | None) -> tuple[str, str, bool]:
    if arg.attention or arg.proposal is None:
        subject = f"{arg.ref.node}: repair {arg.ref.repair_id} needs help"
        return subject, f"{subject}\n{clean(arg.attention)}\ndaytwo repairs show {arg.ref.repair_id}", True
    return summary_line(arg.proposal), as_text(arg.proposal, told), arg.proposal.severity is Severity.CRITICAL


def _is_automatic(policy: Policy, proposal: Proposal) -> bool:
    """True where triage found so, and the policy, which may have been changed since, still says so."""
    return proposal.mode is Mode.AUTO and not asks_a_person(policy, proposal.fault, proposal.action)


def _approve_by_policy(session: Session, arg: AnnounceInput, now: datetime) -> None:
    """Automatic approval is a row like any other, by `policy`, naming the rule; the reconciler delivers it."""
    ident = f"d-policy-{arg.ref.repair_id}-{arg.revision}"
    if arg.proposal is None or session.get(DecisionRow, ident) is not None:
        return
    row = DecisionRow(
        id=ident,
        request_id=ident,
        repair_id=arg.ref.repair_id,
        revision=arg.revision,
        kind="approve",
        moment=arg.proposal.moment,
        actor="policy",
        channel="policy",
        verified=True,
        reason=f"rule {arg.proposal.rule}: mode auto",
        at=now,
    )
    session.add(row)
    audit.append(
        session, actor="policy", act="approve", subject=arg.ref.repair_id, data={"rule": arg.proposal.rule}, now=now
    )
    repairs.touch(session, arg.ref.cluster, arg.ref.node)
