"""The simulated fleet behind a Unix socket: reads and writes for the adapters, commands for people and tests.

`daytwo.lab.main` runs it. `/nodes`, `/jobs`, `/controllers` and `/machines` are the scheduler and the BMCs; `POST
/acts` writes. `/break`, `/heal`, `/restart`, `/outage`, `/skip` and `/status` are for whoever plays with the fleet, and
never fail by an outage.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from daytwo.domain.errors import DaytwoError
from daytwo.domain.vocabulary import Frozen
from daytwo.lab import views
from daytwo.lab.acts import Acts, Entry, Order
from daytwo.lab.faults import SCRIPTS, Break
from daytwo.lab.fleet import Fleet

FOREVER: Final = 24 * 3600.0


class Outage(StrEnum):
    """How the scheduler and the BMCs fail.

    `partial` is HTTP 200 with an error and no rows inside; `lose-answer` acts and never answers.
    """

    NONE = "none"
    GARBAGE = "garbage"
    HANG = "hang"
    REFUSE = "refuse"
    PARTIAL = "partial"
    LOSE_ANSWER = "lose-answer"


class OutageOrder(Frozen):
    """Fail in this way on paths that begin with `path`, until the next order."""

    mode: Outage
    path: str = "/"


class BreakOrder(Break):
    """A `Break` and the node it is for."""

    node: str


class NodeOrder(Frozen):
    """A command for one node."""

    node: str


class Skip(Frozen):
    """Let this many simulated seconds pass at once."""

    seconds: float = Field(gt=0)


class Lab:
    """A fleet whose time runs `speed` times as fast as the clock, and how it fails at the moment."""

    def __init__(self, fleet: Fleet, *, speed: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.fleet = fleet
        self.acts = Acts(fleet)
        self.speed = speed
        self.outage = OutageOrder(mode=Outage.NONE)
        self._clock = clock
        self._began = clock()
        self._skipped = 0.0

    def advance(self) -> Fleet:
        """Let the fleet catch up with the clock and return it."""
        self.fleet.advance((self._clock() - self._began) * self.speed + self._skipped)
        return self.fleet

    def skip(self, seconds: float) -> None:
        """Let simulated seconds pass at once."""
        self._skipped += seconds
        self.advance()

    def failing(self, path: str) -> Outage:
        """Return how a request for `path` is to fail."""
        fails = path.startswith(("/nodes", "/jobs", "/controllers", "/machines", "/acts")) and path.startswith(
            self.outage.path
        )
        return self.outage.mode if fails else Outage.NONE


def lab_app(lab: Lab) -> FastAPI:
    """Return the application that serves `lab`."""
    app = FastAPI(title="daytwo lab", docs_url=None, redoc_url=None)
    app.middleware("http")(_outages(lab))
    app.exception_handler(DaytwoError)(_as_error)
    _add_reads(app, lab)
    _add_writes(app, lab)
    _add_commands(app, lab)
    return app


def now() -> datetime:
    """The wall clock of a lab that runs for real."""
    return datetime.now(UTC)


Next = Callable[[Request], Awaitable[Response]]


def _outages(lab: Lab) -> Callable[[Request, Next], Awaitable[Response]]:
    async def fail(request: Request, call_next: Next) -> Response:
        mode = lab.failing(request.url.path)
        if mode is Outage.LOSE_ANSWER:
            await call_next(request)
        if mode in (Outage.HANG, Outage.LOSE_ANSWER):
            await asyncio.sleep(FOREVER)
        if mode is Outage.GARBAGE:
            return Response("<html>502 Bad Gateway", media_type="text/html")
        if mode is Outage.REFUSE:
            return JSONResponse({"error": "the controller is away"}, status_code=503)
        if mode is Outage.PARTIAL:
            return JSONResponse({"errors": ["Unable to contact slurm controller"], "nodes": [], "jobs": []})
        return await call_next(request)

    return fail


async def _as_error(request: Request, error: Exception) -> JSONResponse:
    status = error.http_status if isinstance(error, DaytwoError) else 500
    return JSONResponse({"error": str(error)}, status_code=status)


def _add_reads(app: FastAPI, lab: Lab) -> None:
    @app.get("/nodes")
    async def nodes() -> dict[str, Any]:
        fleet = lab.advance()
        return {"errors": [], "nodes": [views.scheduler_node(fleet, node) for node in fleet.nodes.values()]}

    @app.get("/nodes/{name}")
    async def node(name: str) -> dict[str, Any]:
        fleet = lab.advance()
        return {"errors": [], "nodes": [views.scheduler_node(fleet, fleet.node(name))]}

    @app.get("/jobs")
    async def jobs(nodes: str = "") -> dict[str, Any]:
        fleet = lab.advance()
        found = views.jobs_on(fleet, nodes.split(",")) if nodes else list(fleet.queue.jobs.values())
        return {"errors": [], "jobs": [views.scheduler_job(fleet, job) for job in found]}

    @app.get("/controllers")
    async def controllers() -> dict[str, Any]:
        return {"errors": [], "controllers": [{"started": lab.advance().controller_started}]}

    @app.get("/machines/{name}")
    async def machine(name: str) -> dict[str, Any]:
        return {"errors": [], "machines": [views.machine(lab.advance().node(name))]}


def _add_writes(app: FastAPI, lab: Lab) -> None:
    @app.post("/acts")
    async def act(order: Order) -> Entry:
        lab.advance()
        return lab.acts.do(order)

    @app.get("/acts/log")
    async def log() -> list[Entry]:
        return lab.acts.log


def _add_commands(app: FastAPI, lab: Lab) -> None:
    @app.get("/status")
    async def status() -> dict[str, Any]:
        return {"speed": lab.speed, "outage": lab.outage.mode, **views.status(lab.advance())}

    @app.get("/faults")
    async def faults() -> list[str]:
        return list(SCRIPTS)

    @app.post("/break")
    async def break_node(order: BreakOrder) -> dict[str, Any]:
        lab.advance().break_node(order.node, Break(**order.model_dump(exclude={"node"})))
        return views.status(lab.fleet)

    @app.post("/heal")
    async def heal(order: NodeOrder) -> dict[str, Any]:
        lab.advance().heal_node(order.node)
        return views.status(lab.fleet)

    @app.post("/restart")
    async def restart() -> dict[str, Any]:
        lab.advance().restart_controller()
        return views.status(lab.fleet)

    @app.post("/outage")
    async def outage(order: OutageOrder) -> OutageOrder:
        lab.outage = order
        return order

    @app.post("/skip")
    async def skip(order: Skip) -> dict[str, Any]:
        lab.skip(order.seconds)
        return views.status(lab.fleet)
