"""The edge of every activity: our errors become Temporal's, and a try is heard of while it lasts and ends whole."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.signatures import Signature
from activities.world import World
from daytwo.domain.errors import DaytwoError, Failed, NotYet, TryAgain
from daytwo.domain.exchange import AssessInput, StepInput

BEATS: Final = 4
"""In the time after which a try that is not heard of is taken for dead. Most tries end before the first."""

MOST_UNFORESEEN: Final = 30
"""Failures in a row of one step that nobody foresaw: some minutes. Then a person is asked instead of trying on."""

In = TypeVar("In")
Out = TypeVar("Out")


class HasWorld(Protocol):
    """A group of activities: what they share is the world."""

    world: World


Method = Callable[[Any, In], Awaitable[Out]]


def implements(signature: Signature[In, Out]) -> Callable[[Method[In, Out]], Method[In, Out]]:
    """Register a method as the activity of that signature; its errors carry their own retry decision."""

    def wrap(method: Method[In, Out]) -> Method[In, Out]:
        unforeseen: Counter[str] = Counter()

        @activity.defn(name=signature.name)
        @functools.wraps(method)
        async def run(self: HasWorld, arg: In) -> Out:
            try:
                result = await heard(method(self, arg))
                unforeseen.pop(_call(), None)
                return result
            except DaytwoError as error:
                unforeseen.pop(_call(), None)
                if isinstance(error, TryAgain) and isinstance(arg, StepInput):
                    await self.world.say_waiting(arg.ref, str(error))
                raise to_failure(error) from error
            except Exception as error:
                unforeseen[_call()] += 1
                if unforeseen[_call()] < MOST_UNFORESEEN or not isinstance(arg, StepInput | AssessInput):
                    raise
                del unforeseen[_call()]
                raise to_failure(Failed(f"{type(error).__name__}: {error}; nobody foresaw this")) from error

        return run

    return wrap


def _call() -> str:
    """The same for each try of one call."""
    return f"{activity.info().workflow_run_id}/{activity.info().activity_id}" if activity.in_activity() else ""


async def heard(work: Awaitable[Out]) -> Out:
    """Let Temporal hear that a try goes on, and let the try end as it would where it is cancelled meanwhile.

    Half a try is worse than none: an act that was sent and not looked at must be asked about. Only a worker that must
    go tears it off, as its death would.
    """
    trying = asyncio.ensure_future(work)
    beating = asyncio.create_task(_beat()) if activity.in_activity() else None
    try:
        while True:
            try:
                return await asyncio.shield(trying)
            except asyncio.CancelledError:
                if trying.done() or not activity.in_activity() or activity.is_worker_shutdown():
                    trying.cancel()
                    await asyncio.wait([trying])
                    raise
    finally:
        if beating is not None:
            beating.cancel()


async def _beat() -> None:
    limit = activity.info().heartbeat_timeout
    while limit:
        await asyncio.sleep(limit.total_seconds() / BEATS)
        activity.heartbeat()


def to_failure(error: DaytwoError) -> ApplicationError:
    """Translate one error. A poll that has not come true is benign and brings its own delay."""
    if isinstance(error, NotYet):
        return ApplicationError(
            str(error),
            type=type(error).__name__,
            next_retry_delay=timedelta(seconds=error.delay_seconds),
            category=ApplicationErrorCategory.BENIGN,
        )
    return ApplicationError(str(error), type=type(error).__name__, non_retryable=not error.retryable)
