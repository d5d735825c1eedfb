"""The HTTP side of the gateway: who is it, how fast, how much; then one transaction in a thread.

`workers.gateway` runs it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from sqlalchemy.exc import DBAPIError
from sqlmodel import select
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from daytwo.backoff import Backoff, Gate
from daytwo.domain.errors import NotFound, TryAgain, Unreachable
from daytwo.gateway.body import read_body
from daytwo.gateway.findings import OldStream, take_findings
from daytwo.gateway.identity import Identity, hash_of, identify
from daytwo.gateway.idle import Said, says_little, take_idle
from daytwo.gateway.limits import Buckets, Familiar, Rate
from daytwo.gateway.metrics import CountRequests, Metrics
from daytwo.gateway.models import Findings, Pulse
from daytwo.gateway.problems import Problem, too_fast
from daytwo.gateway.pulse import take_pulse
from daytwo.gateway.together import Together
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow

log = logging.getLogger(__name__)

PULSE_SECONDS: Final = 60.0
REQUESTS: Final = Rate(burst=60, per_second=5)
RECORDS: Final = Rate(burst=5000, per_second=5)
"""An agent folds to one change a second for each fault; after an hour without a gateway its spool comes at once."""
WRITERS: Final = 4
"""Writes at once. More would only wait for each other inside the store."""

Result = TypeVar("Result")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Gateway:
    """What the routes share. `now` is the server's clock, by which everything is judged."""

    store: Store
    pulse_seconds: float = PULSE_SECONDS
    now: Callable[[], datetime] = _utc_now
    requests: Buckets = field(default_factory=lambda: Buckets(REQUESTS))
    records: Buckets = field(default_factory=lambda: Buckets(RECORDS))
    familiar: Familiar = field(default_factory=Familiar)
    metrics: Metrics = field(default_factory=Metrics)
    idle: Together[Said, dict[str, Any] | None] = field(init=False)
    _gate: Gate = field(default_factory=lambda: Gate("the store", Backoff(0.5, 10.0)))
    _writers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WRITERS))

    def __post_init__(self) -> None:
        self.idle = Together(lambda said: self.write(take_idle, said))

    async def admit(self, node: str, request: Request) -> Identity:
        """Return who speaks. Raises `Problem`: 401 unknown, 403 another node's name, 429 too fast."""
        return await self.vouch(node, request, self.recall(request))

    def recall(self, request: Request) -> Identity | None:
        """Return whose the token was when it was last good; whether it is still, only the store knows.

        Raises `Problem`: 429 too fast.
        """
        hashed = hash_of(request.headers.get("authorization"))
        familiar = self.familiar.node_of(hashed) if hashed else None
        if hashed is None or familiar is None:
            return None
        self._slow_down(*familiar)
        return Identity(*familiar, hashed)

    async def vouch(self, node: str, request: Request, recalled: Identity | None) -> Identity:
        """Return who speaks, as the store says now. Raises `Problem` as `admit` does."""
        hashed = hash_of(request.headers.get("authorization"))
        identity = await self._ask(lambda: identify(self.store, hashed)) if hashed else None
        if hashed is None or identity is None:
            self.familiar.forget(hashed or "")
            raise Problem(401, "the token is missing, unknown or revoked", headers={"WWW-Authenticate": "Bearer"})
        if recalled is None:
            self.familiar.meet(hashed, identity.cluster, identity.node)
            self._slow_down(identity.cluster, identity.node)
        if identity.node != node:
            raise Problem(403, f"node: found {node[:64]!r}, allowed is the token's own", field="node")
        return identity

    def _slow_down(self, cluster: str, node: str) -> None:
        if wait := self.requests.take(cluster, node):
            raise too_fast(wait)

    async def write(self, act: Callable[..., Result], *given: Any) -> Result:
        """Run one transaction in a thread."""
        async with self._writers:
            return await self._ask(lambda: act(self.store, *given, now=self.now(), pulse_seconds=self.pulse_seconds))

    async def _ask(self, question: Callable[[], Result]) -> Result:
        """Ask the store in a thread. One that is away is not asked again for each node that speaks."""
        self._gate.check()
        try:
            answer = await asyncio.to_thread(question)
        except Unreachable as error:
            log.error("%s", error)
            self._gate.failed("it was asked a moment ago")
            raise
        except Exception:  # it has answered, whatever became of the question
            self._gate.answered()
            raise
        self._gate.answered()
        return answer


def _gateway(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


async def findings(request: Request) -> JSONResponse:
    """Take a node's changes; acknowledged means durable."""
    gateway, node = _gateway(request), request.path_params["node"]
    identity = await gateway.admit(node, request)
    said = await read_body(request, Findings)
    if wait := gateway.records.take(identity.cluster, identity.node, len(said.records)):
        raise too_fast(wait)
    answer, effects = await gateway.write(take_findings, identity, said)
    gateway.metrics.count_records(effects)
    return JSONResponse(answer)


async def pulse(request: Request) -> JSONResponse:
    """Take a node's pulse and answer with what it is asked."""
    gateway, node = _gateway(request), request.path_params["node"]
    recalled = gateway.recall(request)
    # Of nobody who is unknown is a body read.
    known = recalled if recalled and recalled.node == node else await gateway.vouch(node, request, recalled)
    said = await read_body(request, Pulse)
    answer = await gateway.idle.take((known, said)) if says_little(said) else None
    if answer is None:
        identity = await gateway.vouch(node, request, known)
        answer = await gateway.write(take_pulse, identity, said)
    gateway.metrics.pulses += 1
    return JSONResponse(answer)


async def healthz(_request: Request) -> JSONResponse:
    """The process answers."""
    return JSONResponse({"status": "ok"})


async def readyz(request: Request) -> JSONResponse:
    """The store answers, too."""
    await asyncio.to_thread(_look, _gateway(request).store)
    return JSONResponse({"status": "ok"})


async def metrics(request: Request) -> PlainTextResponse:
    """Counters for Prometheus."""
    return PlainTextResponse(_gateway(request).metrics.text(), media_type="text/plain; version=0.0.4")


ROUTES: Final = (
    Route("/v1/nodes/{node}/findings", findings, methods=["POST"]),
    Route("/v1/nodes/{node}/pulse", pulse, methods=["POST"]),
    Route("/healthz", healthz),
    Route("/readyz", readyz),
    Route("/metrics", metrics),
)


def create_app(gateway: Gateway) -> Starlette:
    """Return the application of one gateway process. It describes itself to nobody, and is called by many."""
    handlers: dict[Any, Any] = {
        Problem: _on_problem,
        OldStream: _on_old_stream,
        NotFound: _on_not_found,
        HTTPException: _on_http,
        TryAgain: _on_store,
        DBAPIError: _on_store,
        Exception: _on_bug,
    }
    app = Starlette(routes=ROUTES, middleware=[Middleware(CountRequests)], exception_handlers=handlers)
    app.state.gateway = gateway
    return app


def _look(store: Store) -> None:
    with store.read() as session:
        session.exec(select(NodeRow.name).limit(1)).first()


async def _on_problem(request: Request, error: Exception) -> Response:
    error = cast(Problem, error)  # it is registered for this class, as the others below for theirs
    if request.url.path.endswith("/findings") and error.status in (413, 422):
        _gateway(request).metrics.records["refused"] += 1
    return error.response()


async def _on_old_stream(_request: Request, error: Exception) -> Response:
    error = cast(OldStream, error)
    return Problem(409, str(error), field="stream", more={"stream": error.stream}).response()


async def _on_not_found(_request: Request, error: Exception) -> Response:
    return Problem(403, str(error), field="node").response()


async def _on_http(_request: Request, error: Exception) -> Response:
    error = cast(HTTPException, error)
    return Problem(error.status_code, error.detail, headers=error.headers).response()


async def _on_bug(_request: Request, _error: Exception) -> Response:
    # The server logs it; a node that runs other people's jobs is told nothing of it.
    return Problem(500, "the gateway failed").response()


async def _on_store(_request: Request, error: Exception) -> Response:
    if not isinstance(error, Unreachable):  # that was told when it was tried
        log.error("the store does not answer: %s", error)
    return Problem(503, "the store does not answer", headers={"Retry-After": "5"}).response()
