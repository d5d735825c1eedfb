"""Hands out what was collected for a repair, and lets an agent go quiet: for people with a role on the cluster."""

from __future__ import annotations

import base64
from datetime import datetime

from pydantic import Field

from daytwo import evidence, node_requests
from daytwo.domain.errors import NotFound
from daytwo.domain.ids import new_id
from daytwo.domain.vocabulary import Frozen
from daytwo.service import reads
from daytwo.service.asking import check_role
from daytwo.service.decisions import Identity
from daytwo.service.models.evidence import EvidenceFile
from daytwo.service.models.nodes import QuietAsked
from daytwo.service.reads.paging import view
from daytwo.store import audit
from daytwo.store.engine import Store

LIVES_SECONDS = 180.0
"""Three pulses: an agent that misses them all cannot be reached."""


class QuietRequest(Frozen):
    """Which node (`node` or `cluster/node`), for how many seconds (0 ends it), and why."""

    node: str
    seconds: float = Field(ge=0, le=3600)
    reason: str = Field(min_length=1, max_length=2000)


def fetch(store: Store, asker: Identity, repair_id: str, now: datetime) -> EvidenceFile:
    """Return the newest archive of a repair; who took it is in the audit. Raises `NotFound` and `Refused`."""
    with store.write() as session:
        repair = reads.find_repair(session, repair_id)
        check_role(asker, reads.find_cluster(session, repair.cluster))
        kept = [row for row in evidence.of_repair(session, repair_id) if row.data and row.expires_at > now]
        if not kept:
            raise NotFound(f"{repair_id}: there is no evidence; `daytwo repairs show {repair_id}` says why")
        row = kept[-1]
        audit.append(session, asker.actor, "fetch-evidence", repair_id, data={"sha256": row.sha256}, now=now)
        return view(EvidenceFile, row, archive=base64.b64encode(row.data or b"").decode())


def quiesce(store: Store, asker: Identity, request: QuietRequest, now: datetime) -> QuietAsked:
    """Ask a node's agent to hold no GPU for a while. It hears of it with its next pulse. Raises as `fetch` does."""
    with store.write() as session:
        node = reads.find_node(session, request.node)
        check_role(asker, reads.find_cluster(session, node.cluster))
        told = {"seconds": request.seconds, "reason": request.reason}
        audit.append(session, asker.actor, "quiesce", f"{node.cluster}/{node.name}", data=told, now=now)
        cluster, name = node.cluster, node.name
    asked = node_requests.NodeRequest(
        id=new_id("q", now),
        cluster=cluster,
        node=name,
        kind="quiesce",
        ttl_seconds=LIVES_SECONDS,
        arguments={"seconds": request.seconds},
    )
    return _quiet(node_requests.ask(store, asked, now=now).id, store, now)


def quiet(store: Store, request_id: str, now: datetime) -> QuietAsked:
    """What became of such a request. Raises `NotFound`."""
    return _quiet(request_id, store, now)


def _quiet(request_id: str, store: Store, now: datetime) -> QuietAsked:
    row = node_requests.answer_for(store, request_id, now=now)
    if row.kind != "quiesce":
        raise NotFound(f"there is no request {request_id!r} to let go of GPUs")
    said = row.result
    holders = [str(each)[:200] for each in said.get("holders", ())] if isinstance(said.get("holders"), list) else []
    return QuietAsked(
        id=row.id,
        cluster=row.cluster,
        node=row.node,
        state=row.state,
        error=row.error or str(said.get("error", ""))[:500],
        let_go=said.get("let_go") is True,
        holders=tuple(holders),
    )
