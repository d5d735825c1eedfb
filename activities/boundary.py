"""Where our errors become Temporal's: one translator, at the edge of every activity."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.signatures import Signature
from activities.world import World
from daytwo.domain.errors import DaytwoError, NotYet, TryAgain
from daytwo.domain.exchange import StepInput

I = TypeVar("I")  # noqa: E741  # input and output, as in activities.signatures
O = TypeVar("O")  # noqa: E741


class HasWorld(Protocol):
    """A group of activities: what they share is the world."""

    world: World


Method = Callable[[Any, I], Awaitable[O]]


def implements(signature: Signature[I, O]) -> Callable[[Method[I, O]], Method[I, O]]:
    """Register a method as the activity of that signature; its errors carry their own retry decision."""

    def wrap(method: Method[I, O]) -> Method[I, O]:
        @activity.defn(name=signature.name)
        @functools.wraps(method)
        async def run(self: HasWorld, arg: I) -> O:
            try:
                return await method(self, arg)
            except DaytwoError as error:
                if isinstance(error, TryAgain) and isinstance(arg, StepInput):
                    await self.world.say_waiting(arg.ref, str(error))
                raise to_failure(error) from error

        return run

    return wrap


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
