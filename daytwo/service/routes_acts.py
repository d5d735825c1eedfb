"""The API's deciding half."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from pydantic import Field

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.vocabulary import Decision, Frozen
from daytwo.service import administration, asking, credentials, evidence, freezes, holding, removing
from daytwo.service.decisions import DecisionRequest, decide
from daytwo.service.models.acts import ClusterRemoved, NodeHeld, TokenIssued, TokensRevoked
from daytwo.service.models.evidence import EvidenceFile
from daytwo.service.models.nodes import QuietAsked
from daytwo.service.models.paging import Page
from daytwo.service.models.plane import ClusterView, FreezeView
from daytwo.service.models.repairs import RepairSummary
from daytwo.service.plane import AskerDep, Plane, PlaneDep

router = APIRouter()


class ScopeRequest(Frozen):
    """A freeze or a thaw: `scope` is `*`, `cluster` or `cluster/node`."""

    scope: str
    reason: str = Field(default="", max_length=2000)


class EvidenceRequest(Frozen):
    """Which repair."""

    repair: str


class TokenRequest(Frozen):
    """Which node: `node` or `cluster/node`."""

    node: str


@router.post("/decisions", tags=["repairs"], status_code=202)
async def make_decision(plane: PlaneDep, asker: AskerDep, request: DecisionRequest) -> Decision:
    """Write a decision down. It is accepted or refused later: `GET /v1/decisions/{id}?wait=…` tells."""
    decision = await asyncio.to_thread(decide, plane.store, asker, request, plane.clock())
    plane.deliver_soon(decision.id)
    return decision


@router.post("/repairs", tags=["repairs"], status_code=201)
def ask_repair(plane: PlaneDep, asker: AskerDep, request: asking.RepairRequest) -> RepairSummary:
    """Open a repair of a node; what is done to it needs approval like any other."""
    return asking.ask(plane.store, asker, request, plane.clock())


@router.post("/node-holds", tags=["nodes"], status_code=201)
async def hold_node(plane: PlaneDep, asker: AskerDep, request: holding.HoldRequest) -> NodeHeld:
    """Open no repair on a node, and hold the one that is open."""
    return _told(plane, await asyncio.to_thread(holding.hold, plane.store, asker, request, plane.clock()))


@router.post("/node-releases", tags=["nodes"])
async def release_node(plane: PlaneDep, asker: AskerDep, request: holding.HoldRequest) -> NodeHeld:
    """End the hold of a node."""
    return _told(plane, await asyncio.to_thread(holding.release, plane.store, asker, request, plane.clock()))


def _told(plane: Plane, held: NodeHeld) -> NodeHeld:
    if held.decision:
        plane.deliver_soon(held.decision)
    return held


@router.post("/evidence", tags=["repairs"])
def fetch_evidence(plane: PlaneDep, asker: AskerDep, request: EvidenceRequest) -> EvidenceFile:
    """The newest archive that was collected for a repair; who took it is in the audit."""
    return evidence.fetch(plane.store, asker, request.repair, plane.clock())


@router.post("/node-quiets", tags=["nodes"], status_code=202)
def quiesce_node(plane: PlaneDep, asker: AskerDep, request: evidence.QuietRequest) -> QuietAsked:
    """Ask a node's agent to hold no GPU for a while: `GET /v1/node-quiets/{id}` tells what came of it."""
    return evidence.quiesce(plane.store, asker, request, plane.clock())


@router.post("/freezes", tags=["plane"], status_code=201)
def freeze(plane: PlaneDep, asker: AskerDep, request: ScopeRequest) -> FreezeView:
    """Stop every act in the scope that has not begun."""
    return freezes.freeze(plane.store, asker, request.scope, reason=request.reason, now=plane.clock())


@router.post("/thaws", tags=["plane"])
def thaw(plane: PlaneDep, asker: AskerDep, request: ScopeRequest) -> Page[FreezeView]:
    """End the freezes of exactly this scope."""
    ended = freezes.thaw(plane.store, asker, request.scope, reason=request.reason, owner=plane.owner, now=plane.clock())
    return Page(items=ended)


@router.post("/clusters", tags=["clusters"])
def apply_cluster(plane: PlaneDep, asker: AskerDep, definition: ClusterDefinition) -> ClusterView:
    """Declare a cluster, or change it."""
    return administration.apply_cluster(plane.store, asker, definition, owner=plane.owner, now=plane.clock())


@router.post("/cluster-removals", tags=["clusters"])
def remove_cluster(plane: PlaneDep, asker: AskerDep, request: removing.RemovalRequest) -> ClusterRemoved:
    """Look after a cluster no more. Refused while anything of it is under way or marked."""
    return removing.remove(plane.store, asker, request, owner=plane.owner, now=plane.clock())


@router.post("/tokens", tags=["nodes"], status_code=201)
def issue_token(plane: PlaneDep, asker: AskerDep, request: TokenRequest) -> TokenIssued:
    """Issue a token for a node's agent; it is shown this once."""
    return administration.issue(plane.store, asker, request.node, owner=plane.owner, now=plane.clock())


@router.post("/revocations", tags=["nodes"])
def revoke_tokens(plane: PlaneDep, asker: AskerDep, request: TokenRequest) -> TokensRevoked:
    """Make every token of a node's agent worthless at once."""
    return credentials.revoke(plane.store, asker, request.node, owner=plane.owner, now=plane.clock())
