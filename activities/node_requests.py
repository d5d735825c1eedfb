"""The tests before a node returns: asks its agent, reads the scheduler, and lets the domain judge."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import func
from sqlmodel import Session, col, select

from activities import signatures as do
from activities.boundary import implements
from activities.patience import Patience
from activities.scheduler import SchedulerActivities
from activities.world import World
from daytwo import node_requests as mailbox
from daytwo.adapters import Cluster
from daytwo.domain.errors import NotYet, TryAgain
from daytwo.domain.exchange import StepInput, Verified
from daytwo.domain.ids import new_id
from daytwo.domain.machines import Before, Identity, identity_from, known_gpus
from daytwo.domain.proposal import BOOTS
from daytwo.domain.seams import NodeFacts
from daytwo.domain.verification import ACCEPTABLE, Evidence, Verification, judge, plan
from daytwo.domain.vocabulary import DecisionKind, DecisionStatus
from daytwo.store.situations import node_row
from daytwo.store.tables import (
    CheckResultRow,
    CheckRunRow,
    DecisionRow,
    NodeRequestRow,
    NodeRow,
    ObservationRow,
)

POLL_SECONDS: Final = 1.0


class VerifyActivities:
    """The activity `verify`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._scheduler = SchedulerActivities(world)
        self._patience = Patience(world)

    @implements(do.VERIFY)
    async def verify(self, arg: StepInput) -> Verified:
        """Test the node for the fault that it had. The marks are written again first: a reboot may have lifted them."""
        cluster = await self.world.cluster(arg.ref)
        try:
            await self._scheduler.mark(cluster, arg)
        except TryAgain as error:
            limit = cluster.definition.policy.verify.timeout_seconds
            raise await self._patience.after(error, arg, "our marks are not written again", limit) from None
        self._wait_for_quiet(cluster, arg)
        rows = await self._ask(cluster, arg)
        judged = await self._judge(cluster, arg, rows)
        if judged.wait_seconds and not await self._is_late(cluster, arg):
            await asyncio.to_thread(self._forget, arg)
            raise NotYet(f"{arg.ref.node}: {judged.summary}", judged.wait_seconds)
        return await self.world.write(lambda s: _write_run(s, arg, judged, self.world))

    def _wait_for_quiet(self, cluster: Cluster, arg: StepInput) -> None:
        """The kernel log must be quiet for long enough after the act; asking the agent before that proves nothing."""
        quiet = timedelta(seconds=cluster.definition.policy.verify.quiet_seconds)
        left = ((arg.acted_at or arg.since) + quiet - self.world.now()).total_seconds()
        if left > 0:
            raise NotYet(f"{arg.ref.node}: quiet time before the tests", min(left + 0.2, 60.0))

    async def _is_late(self, cluster: Cluster, arg: StepInput) -> bool:
        return await self._patience.is_late(arg, cluster.definition.policy.verify.timeout_seconds)

    async def _ask(self, cluster: Cluster, arg: StepInput) -> list[NodeRequestRow]:
        """What this round needs to know of the agent, answered or not in time."""
        wanted = plan(_tests(arg))
        kinds = [
            kind for kind, asked in (("probe-gpus", wanted.needs_gpus), ("probe-kernel", wanted.needs_kernel)) if asked
        ]
        within = cluster.definition.policy.verify.answer_seconds
        rows = [await asyncio.to_thread(self._question, arg, kind, within) for kind in kinds]
        if any(row.state in mailbox.UNANSWERED for row in rows):
            raise NotYet(f"{arg.ref.node}: waiting for its agent", POLL_SECONDS)
        if any(row.state != mailbox.DONE for row in rows):
            await self._excuse_the_gateway(cluster, arg, since=min(row.created_at for row in rows))
        return rows

    async def _excuse_the_gateway(self, cluster: Cluster, arg: StepInput, *, since: datetime) -> None:
        """Raise `NotYet`, to ask again, where no agent at all has been heard since this one was asked."""
        heard = await self.world.read(lambda s: s.exec(select(func.max(NodeRow.last_heard_at))).one())
        if (heard is None or heard < since) and not await self._is_late(cluster, arg):
            await asyncio.to_thread(self._forget, arg)
            raise NotYet(f"{arg.ref.node}: no agent is heard since it was asked: is the gateway up?", POLL_SECONDS)

    def _question(self, arg: StepInput, kind: str, within: float) -> NodeRequestRow:
        ident = f"{arg.ref.repair_id}/{arg.stage}/{kind}/{self._round(arg, kind)}"
        question = mailbox.NodeRequest(
            id=ident,
            cluster=arg.ref.cluster,
            node=arg.ref.node,
            kind=kind,
            ttl_seconds=within,
            repair_id=arg.ref.repair_id,
        )
        mailbox.ask(self.world.store, question, now=self.world.now())
        return mailbox.answer_for(self.world.store, ident, now=self.world.now())

    def _round(self, arg: StepInput, kind: str) -> int:
        """Rounds that were judged and did not suffice are withdrawn; the next one has the next number."""
        prefix = f"{arg.ref.repair_id}/{arg.stage}/{kind}/"
        with self.world.store.read() as session:
            ids = session.exec(select(NodeRequestRow.id).where(col(NodeRequestRow.id).startswith(prefix))).all()
            used = session.exec(
                select(NodeRequestRow.id).where(
                    col(NodeRequestRow.id).startswith(prefix), col(NodeRequestRow.error).startswith(OVERTAKEN)
                )
            ).all()
        return len(used) if len(used) == len(ids) else len(ids) - 1

    def _forget(self, arg: StepInput) -> None:
        prefix = f"{arg.ref.repair_id}/{arg.stage}/"
        with self.world.store.write() as session:
            mine = select(NodeRequestRow).where(col(NodeRequestRow.id).startswith(prefix)).with_for_update()
            rows = session.exec(mine.order_by(col(NodeRequestRow.created_at), col(NodeRequestRow.id))).all()
            for row in rows:
                if not row.error.startswith(OVERTAKEN):
                    row.error = f"{OVERTAKEN}; {row.error}" if row.error else OVERTAKEN
                session.add(row)

    async def _judge(self, cluster: Cluster, arg: StepInput, rows: list[NodeRequestRow]) -> Verification:
        facts = await self._facts(cluster, arg)
        node = await self.world.read(lambda s: node_row(s, arg.ref.cluster, arg.ref.node))
        accepted = await self.world.read(lambda s: _accepted(s, arg.ref.repair_id))
        evidence = self._evidence(cluster, arg, rows, facts, node).model_copy(update={"accepted": accepted})
        return judge(evidence, cluster.definition.policy)

    async def _facts(self, cluster: Cluster, arg: StepInput) -> NodeFacts | None:
        """What the scheduler knows of the node; `None`, which fails its test, only when the time for tests is over."""
        try:
            return await cluster.scheduler.node(arg.ref.node)
        except TryAgain:
            if await self._is_late(cluster, arg):
                return None
            # The agent is asked again too: what it sees meanwhile must not count as judged.
            await asyncio.to_thread(self._forget, arg)
            raise

    def _evidence(
        self, cluster: Cluster, arg: StepInput, rows: list[NodeRequestRow], facts: NodeFacts | None, node: NodeRow
    ) -> Evidence:
        proposal, done = arg.proposal, [row for row in rows if row.state == mailbox.DONE]
        answers: dict[str, dict[str, Any]] = {row.kind: row.result for row in done}
        before = (proposal.before if proposal else None) or Before()
        return Evidence(
            wanted=_tests(arg),
            gpus=answers.get("probe-gpus"),
            kernel=answers.get("probe-kernel"),
            facts=facts,
            expected_gpus=before.expected_gpus if node.expected_gpus is None else node.expected_gpus,
            known_uuids=before.gpus or known_gpus(node.inventory),
            boot_id_before=proposal.boot_id if proposal else None,
            boot_id_now=node.boot_id,
            boot_expected=arg.acted_at is not None and arg.action in BOOTS,
            same_boot_ok=cluster.definition.slurm.one_machine,
            acted_at=arg.acted_at,
            now=self.world.now(),
            fault=proposal.fault if proposal else "",
            entities=proposal.entities if proposal else (),
            identity_before=before.identity,
            identity_now=_who_answered(node, done),
            answered_in=tuple(row.boot_id for row in done if row.boot_id),
        )


OVERTAKEN: Final = "judged, and asked again"


def _who_answered(node: NodeRow, done: list[NodeRequestRow]) -> Identity:
    """Who the machine said it is with its answers or since; what was said before them may be another's word."""
    answered_at = max((row.ended_at for row in done if row.ended_at), default=None)
    if node.identity_at is None or answered_at is None or node.identity_at < answered_at:
        return Identity(None, None)
    return identity_from(node.identity.get("system_uuid"), node.identity.get("serial"))


def _accepted(session: Session, repair_id: str) -> tuple[str, ...]:
    """What tests have found different that a person, who could read it, has accepted by asking the node back."""
    mine = (DecisionRow.repair_id == repair_id, DecisionRow.kind == DecisionKind.RETURN_AFTER_TESTS)
    said = (*mine, DecisionRow.status == DecisionStatus.ACCEPTED, col(DecisionRow.verified))
    last = session.exec(select(func.max(DecisionRow.at)).where(*said)).one()
    if last is None:
        return ()
    seen = (CheckRunRow.repair_id == repair_id, col(CheckRunRow.ended_at) < last)
    runs = select(CheckRunRow.id).where(*seen)
    told = (col(CheckResultRow.run_id).in_(runs), col(CheckResultRow.name).in_(ACCEPTABLE))
    return tuple(session.exec(select(CheckResultRow.text).where(*told)))


def _tests(arg: StepInput) -> tuple[str, ...]:
    return arg.proposal.verify if arg.proposal else ()


def _write_run(session: Session, arg: StepInput, judged: Verification, world: World) -> Verified:
    now = world.now()
    run_id = new_id("c", now)
    session.add(
        CheckRunRow(
            id=run_id,
            cluster=arg.ref.cluster,
            node=arg.ref.node,
            repair_id=arg.ref.repair_id,
            started_at=arg.since,
            ended_at=now,
            passed=judged.passed,
            summary=judged.summary,
        )
    )
    session.add_all(
        CheckResultRow(run_id=run_id, name=test.name, result=test.result, text=test.text) for test in judged.results
    )
    return Verified(
        passed=judged.passed,
        still_faulty=judged.still_faulty,
        untested=judged.untested,
        summary=judged.summary,
        run_id=run_id,
        up_to=judged_up_to(session, arg),
    )


def judged_up_to(session: Session, arg: StepInput) -> int:
    """The last observation from before the agent was asked: nobody has looked at what came later."""
    answered = (
        col(NodeRequestRow.id).startswith(f"{arg.ref.repair_id}/{arg.stage}/", autoescape=True),
        NodeRequestRow.state == mailbox.DONE,
        NodeRequestRow.error != OVERTAKEN,
    )
    asked_at = session.exec(select(func.min(NodeRequestRow.offered_at)).where(*answered)).one()
    mine = [ObservationRow.cluster == arg.ref.cluster, ObservationRow.node == arg.ref.node]
    if asked_at is not None:
        mine.append(ObservationRow.received_at <= asked_at)
    return session.exec(select(func.max(ObservationRow.id)).where(*mine)).one() or 0
