"""What the routes of the service share: the store, the way to deliver decisions, the clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from sqlmodel import Session

from daytwo.service.answering import StatusReader
from daytwo.service.decisions import Delivery, Identity, deliver_soon
from daytwo.service.local_socket import asker
from daytwo.service.models.status import Status
from daytwo.store.engine import Store

LAST_DELIVERIES_SECONDS = 3.0


def utc_now() -> datetime:
    """The time, aware, in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Plane:
    """One per app. `owner` is the identity of the user the service runs as, who administers it."""

    store: Store
    delivery: Delivery
    owner: str
    clock: Callable[[], datetime] = utc_now
    statuses: StatusReader = field(init=False)
    _under_way: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.statuses = StatusReader(self.clock)

    async def status(self) -> Status:
        """The installation in one answer."""
        return await self.statuses.read(self.store)

    def deliver_soon(self, decision_id: str) -> None:
        """Begin to deliver a decision; the answer to the asker does not wait for it."""
        task = asyncio.create_task(deliver_soon(self.delivery, decision_id))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def stop(self) -> None:
        """Let deliveries end, then cancel them: the reconciler delivers what is left."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=LAST_DELIVERIES_SECONDS)
            for task in late:
                task.cancel()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Ends what the app began."""
    yield
    await plane_of(app).stop()


def plane_of(app: FastAPI) -> Plane:
    """The plane an app was made with."""
    plane: Plane = app.state.plane
    return plane


def _plane(request: Request) -> Plane:
    return plane_of(request.app)


def _session(request: Request) -> Iterator[Session]:
    with plane_of(request.app).store.read() as session:
        yield session


PlaneDep = Annotated[Plane, Depends(_plane)]
AskerDep = Annotated[Identity, Depends(asker)]
SessionDep = Annotated[Session, Depends(_session)]
