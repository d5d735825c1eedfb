"""The API's reading half: each route is one function of `daytwo.service.reads`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from daytwo.domain.vocabulary import Decision, Finding
from daytwo.service import reads
from daytwo.service.decisions import LOOK_SECONDS, wait_for
from daytwo.service.evidence import quiet
from daytwo.service.models.nodes import NodeDetail, NodeSummary, QuietAsked
from daytwo.service.models.paging import Page
from daytwo.service.models.plane import AuditVerdict, AuditView, ClusterView, FreezeView
from daytwo.service.models.repairs import RepairDetail, RepairProgress, RepairSummary
from daytwo.service.models.rules import FaultView, RuleView
from daytwo.service.models.status import Status
from daytwo.service.plane import Plane, PlaneDep, SessionDep

router = APIRouter()

MOST_WAIT_SECONDS = 30.0
Limit = Annotated[int, Query(ge=1, le=reads.MOST)]
Wait = Annotated[float, Query(ge=0, le=MOST_WAIT_SECONDS, description="Wait up to so many seconds for news.")]
States = Annotated[tuple[str, ...], Query(alias="state")]


@router.get("/status", tags=["plane"])
async def status(plane: PlaneDep) -> Status:
    """The installation in one answer, within a second; while the store is away, that is the answer."""
    return await plane.status()


@router.get("/repairs", tags=["repairs"])
def list_repairs(
    session: SessionDep,
    *,
    state: States = (),
    cluster: str | None = None,
    node: str | None = None,
    open_only: bool = False,
    limit: Limit = 100,
    after: str | None = None,
) -> Page[RepairSummary]:
    """Repairs, newest first."""
    wanted = reads.Filter(cluster=cluster, node=node, states=state, active_only=open_only, limit=limit, after=after)
    return reads.repairs(session, wanted)


@router.get("/repairs/{repair_id}", tags=["repairs"])
def show_repair(plane: PlaneDep, session: SessionDep, repair_id: str) -> RepairDetail:
    """One repair with its timeline, decisions, acts and tests."""
    return reads.repair(session, repair_id, plane.clock())


@router.get("/repairs/{repair_id}/progress", tags=["repairs"])
async def follow_repair(plane: PlaneDep, repair_id: str, after: int = 0, wait: Wait = 0) -> RepairProgress:
    """What happened to a repair after event number `after`; waits for news of one that is open."""
    end = asyncio.get_running_loop().time() + wait
    while True:
        found = await asyncio.to_thread(_progress, plane, repair_id, after)
        if found.events or not found.open or asyncio.get_running_loop().time() >= end:
            return found
        await asyncio.sleep(LOOK_SECONDS)


@router.get("/decisions/{decision_id}", tags=["repairs"])
async def show_decision(plane: PlaneDep, decision_id: str, wait: Wait = 0) -> Decision:
    """One decision; waits for it to end."""
    return await wait_for(plane.store, decision_id, wait)


@router.get("/node-quiets/{request_id}", tags=["nodes"])
def show_quiet(plane: PlaneDep, request_id: str) -> QuietAsked:
    """What became of a request to an agent to hold no GPU."""
    return quiet(plane.store, request_id, plane.clock())


@router.get("/nodes", tags=["nodes"])
def list_nodes(
    plane: PlaneDep,
    session: SessionDep,
    *,
    state: States = (),
    cluster: str | None = None,
    limit: Limit = 100,
    after: str | None = None,
) -> Page[NodeSummary]:
    """Nodes by cluster and name."""
    wanted = reads.Filter(cluster=cluster, states=state, limit=limit, after=after)
    return reads.nodes(session, wanted, plane.clock())


@router.get("/nodes/{name:path}", tags=["nodes"])
def show_node(plane: PlaneDep, session: SessionDep, name: str) -> NodeDetail:
    """One node, named `node` or `cluster/node`."""
    return reads.node(session, name, plane.clock())


@router.get("/findings", tags=["nodes"])
def list_findings(
    session: SessionDep,
    *,
    state: States = (),
    cluster: str | None = None,
    node: str | None = None,
    fault: str | None = None,
    limit: Limit = 100,
    after: str | None = None,
) -> Page[Finding]:
    """Findings, newest first; states are `firing` and `cleared`."""
    wanted = reads.Filter(cluster=cluster, node=node, states=state, fault=fault, limit=limit, after=after)
    return reads.findings(session, wanted)


@router.get("/faults", tags=["faults"])
def list_faults() -> Page[FaultView]:
    """The catalogue of faults."""
    return reads.faults()


@router.get("/faults/{fault_id}", tags=["faults"])
def show_fault(fault_id: str) -> FaultView:
    """One entry of the catalogue."""
    return reads.fault(fault_id)


@router.get("/policy/{fault_id}", tags=["faults"])
def explain_rule(session: SessionDep, fault_id: str, cluster: str | None = None) -> RuleView:
    """What a cluster's policy comes to for one fault; `cluster` may be left out where there is one."""
    return reads.rule(session, fault_id, cluster)


@router.get("/clusters", tags=["clusters"])
def list_clusters(session: SessionDep, limit: Limit = 100, after: str | None = None) -> Page[ClusterView]:
    """The declared clusters."""
    return reads.clusters(session, reads.Filter(limit=limit, after=after))


@router.get("/freezes", tags=["plane"])
def list_freezes(
    session: SessionDep, active_only: bool = True, limit: Limit = 100, after: str | None = None
) -> Page[FreezeView]:
    """Freezes, newest first."""
    return reads.freezes(session, reads.Filter(active_only=active_only, limit=limit, after=after))


@router.get("/audit", tags=["audit"])
def list_audit(
    session: SessionDep, subject: str | None = None, limit: Limit = 100, after: str | None = None
) -> Page[AuditView]:
    """The audit chain, newest first; `subject` is a repair, a node (with its repairs), a cluster, a scope or `*`."""
    return reads.audit_rows(session, reads.Filter(subject=subject, limit=limit, after=after))


@router.get("/audit/verify", tags=["audit"])
def verify_audit(session: SessionDep) -> AuditVerdict:
    """Walk the whole audit chain."""
    return reads.audit_verdict(session)


def _progress(plane: Plane, repair_id: str, after: int) -> RepairProgress:
    with plane.store.read() as session:
        return reads.progress(session, repair_id, after)
