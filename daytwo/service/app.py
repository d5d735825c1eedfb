"""The JSON API for people; `workers/service.py` serves it on a Unix socket. OpenAPI: `/openapi.json`.

Every path under `/v1` needs an identity; every error is a `Problem`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from fastapi import Depends, FastAPI

import daytwo
from daytwo.service import problems, routes_acts, routes_reads
from daytwo.service.bodies import BoundedBodies
from daytwo.service.decisions import Delivery
from daytwo.service.local_socket import asker
from daytwo.service.plane import Plane, lifespan, utc_now
from daytwo.store.engine import Store


def create_app(store: Store, *, delivery: Delivery, owner: str, clock: Callable[[], datetime] = utc_now) -> FastAPI:
    """Return the API over `store`. `owner` is the identity (`cli:…`) of the user that the service runs as."""
    app = FastAPI(title="daytwo", version=daytwo.__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.plane = Plane(store=store, delivery=delivery, owner=owner, clock=clock)
    problems.install(app)
    app.add_middleware(BoundedBodies)
    app.add_api_route("/healthz", healthz, tags=["plane"])
    for router in (routes_reads.router, routes_acts.router):
        app.include_router(router, prefix="/v1", dependencies=[Depends(asker)], responses=problems.RESPONSES)
    return app


def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}
