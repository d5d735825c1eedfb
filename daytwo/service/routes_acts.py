"""The API's deciding half."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from daytwo.domain.vocabulary import Decision, Frozen
from daytwo.service import freezes, models
from daytwo.service.decisions import DecisionRequest, decide
from daytwo.service.plane import AskerDep, PlaneDep

router = APIRouter()


class ScopeRequest(Frozen):
    """A freeze or a thaw: `scope` is `*`, `cluster` or `cluster/node`."""

    scope: str
    reason: str = ""


@router.post("/decisions", tags=["repairs"], status_code=202)
async def make_decision(plane: PlaneDep, asker: AskerDep, request: DecisionRequest) -> Decision:
    """Write a decision down. It is accepted or refused later: `GET /v1/decisions/{id}?wait=…` tells."""
    decision = await asyncio.to_thread(decide, plane.store, asker, request, plane.clock())
    plane.deliver_soon(decision.id)
    return decision


@router.post("/freezes", tags=["plane"], status_code=201)
def freeze(plane: PlaneDep, asker: AskerDep, request: ScopeRequest) -> models.FreezeView:
    """Stop every act in the scope that has not begun."""
    return freezes.freeze(plane.store, asker, request.scope, reason=request.reason, now=plane.clock())


@router.post("/thaws", tags=["plane"])
def thaw(plane: PlaneDep, asker: AskerDep, request: ScopeRequest) -> models.Page[models.FreezeView]:
    """End the freezes of exactly this scope."""
    ended = freezes.thaw(plane.store, asker, request.scope, reason=request.reason, owner=plane.owner, now=plane.clock())
    return models.Page(items=ended)
