"""A repair that a person starts: the row that opens it. From there it goes the way of every other."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pydantic import Field
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, select

from daytwo import repairs
from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import BadInput, Refused, Stale
from daytwo.domain.ids import new_id
from daytwo.domain.vocabulary import Action, Frozen
from daytwo.service import reads
from daytwo.service.decisions import Identity
from daytwo.service.models.repairs import RepairSummary
from daytwo.service.reads.repairs import summary
from daytwo.service.rights import NotAllowed, may
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, NodeRow, RepairRow

ONE_REPAIR: Final = "A node has one open repair at a time; decide on that one. Nothing was done."


class RepairRequest(Frozen):
    """Which node (`node` or `cluster/node`), what should be done to it, and why."""

    node: str
    action: Action
    reason: str = Field(default="", max_length=2000)


def ask(store: Store, asker: Identity, request: RepairRequest, now: datetime) -> RepairSummary:
    """Open a repair; what is done to the node still needs its approval. Anybody with a role may ask.

    Raises `NotFound`, `BadInput` without a reason, `Refused`, and `Stale` where a repair is open on the node.
    """
    if not request.reason.strip():
        raise BadInput("reason: found nothing; a repair that somebody asks for needs a sentence that says why")
    try:
        return store.change(lambda session: _ask(session, asker, request, now))
    except IntegrityError as error:
        raise Stale(
            f"a repair was opened on {request.node} a moment ago", why=ONE_REPAIR, following="daytwo repairs list"
        ) from error


def _ask(session: Session, asker: Identity, request: RepairRequest, now: datetime) -> RepairSummary:
    node = reads.find_node(session, request.node)
    cluster = reads.find_cluster(session, node.cluster)
    check_role(asker, cluster)
    if node.held_by is not None:
        raise Stale(
            f"{node.name} is held by {node.held_by}: {node.held_reason}",
            why="No repair is opened on a node that somebody holds. Nothing was done.",
            following=f"daytwo nodes show {node.cluster}/{node.name}; its hold ends with: "
            f"daytwo nodes release {node.cluster}/{node.name} --reason ...",
        )
    if standing := open_repair(session, node):
        raise Stale(
            f"repair {standing.id} is open on {node.name}: {standing.state}",
            why=ONE_REPAIR,
            following=f"daytwo repairs show {standing.id}",
        )
    row = repairs.open_row(
        session,
        new_id("r", now),
        node,
        why=request.reason,
        opened_by=asker.actor,
        policy_revision=cluster.policy_revision,
        now=now,
    )
    row.action = request.action
    audit.append(session, asker.actor, "ask-repair", row.id, data={"action": request.action}, now=now)
    repairs.touch(session, node.cluster, node.name)
    return summary(row)


def check_role(asker: Identity, cluster: ClusterRow) -> None:
    """Raise `Refused` for somebody who has no role on this cluster."""
    policy = ClusterDefinition.model_validate(cluster.definition).policy
    verdict = may(policy, asker.actor, None, verified=asker.verified)
    if isinstance(verdict, NotAllowed):
        raise Refused(verdict.why)


def open_repair(session: Session, node: NodeRow) -> RepairRow | None:
    """The repair that is open on a node, locked: no act of it passes its last look meanwhile."""
    key = f"{node.cluster}/{node.name}"
    return session.exec(select(RepairRow).where(RepairRow.open_key == key).with_for_update()).first()
