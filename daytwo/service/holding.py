"""Hold a node and release it: a person says that its repairs are to wait."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field
from sqlmodel import Session

from daytwo import holds, repairs
from daytwo.domain.errors import BadInput, Stale
from daytwo.domain.vocabulary import Frozen, State
from daytwo.service import reads
from daytwo.service.asking import check_role, open_repair
from daytwo.service.decisions import Identity
from daytwo.service.models.acts import NodeHeld
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow, RepairRow


class HoldRequest(Frozen):
    """Which node (`node` or `cluster/node`), and why."""

    node: str
    reason: str = Field(default="", max_length=2000)


def hold(store: Store, asker: Identity, request: HoldRequest, now: datetime) -> NodeHeld:
    """Open no repair on the node, and hold the one that is open as long as it has not begun to act.

    Anybody with a role may. Raises `NotFound`, `BadInput` without a reason, `Refused`, and `Stale` for a held node.
    """
    _need_reason(request)
    with store.write() as session:
        node = reads.find_node(session, request.node)
        key = f"{node.cluster}/{node.name}"
        check_role(asker, reads.find_cluster(session, node.cluster))
        if node.held_by is not None:
            raise Stale(
                f"{node.name} is held by {node.held_by} already, since {_minute(node.held_at)}: {node.held_reason}",
                why="A node is held once, and stays so until somebody releases it. Nothing was done.",
                following=f"daytwo nodes show {key}; to end it: daytwo nodes release {key} --reason ...",
            )
        repair = open_repair(session, node)
        node.held_by, node.held_reason, node.held_at = asker.actor, request.reason, now
        session.add(node)
        decision = holds.hold_repair(session, node, repair, now) if repair else None
        _write_down(session, asker, "hold-node", node, request, now=now)
        return NodeHeld(cluster=node.cluster, node=node.name, held_by=asker.actor, decision=decision)


def release(store: Store, asker: Identity, request: HoldRequest, now: datetime) -> NodeHeld:
    """End the hold, and release the repair that it held. Raises as `hold` does; `Stale` for a node that is not held."""
    _need_reason(request)
    with store.write() as session:
        node = reads.find_node(session, request.node)
        key = f"{node.cluster}/{node.name}"
        check_role(asker, reads.find_cluster(session, node.cluster))
        if node.held_by is None:
            raise Stale(
                f"{node.name} is not held{_held_repair(open_repair(session, node))}",
                why="Only a node that somebody holds (daytwo nodes hold) can be released. Nothing was done.",
                following=f"daytwo nodes show {key}",
            )
        repair = open_repair(session, node)
        told = {"actor": asker.actor, "reason": request.reason}
        decision = holds.release_repair(session, node, repair, now=now, **told) if repair else None
        node.held_by, node.held_reason, node.held_at = None, "", None
        session.add(node)
        _write_down(session, asker, "release-node", node, request, now=now)
        return NodeHeld(cluster=node.cluster, node=node.name, held_by=None, decision=decision)


def _need_reason(request: HoldRequest) -> None:
    if not request.reason.strip():
        raise BadInput("reason: found nothing; say why, so that whoever finds the node can judge")


def _minute(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%MZ}" if at else "some time"


def _held_repair(repair: RepairRow | None) -> str:
    """Whoever means a repair that a person holds is told the command for that."""
    if repair is None or repair.state != State.HELD:
        return ""
    return f"; its repair is: daytwo repairs release {repair.id} --revision {repair.revision}"


def _write_down(
    session: Session, asker: Identity, act: str, node: NodeRow, request: HoldRequest, *, now: datetime
) -> None:
    audit.append(session, asker.actor, act, f"{node.cluster}/{node.name}", data={"reason": request.reason}, now=now)
    repairs.touch(session, node.cluster, node.name)
