"""How the call of an activity ends: heard to the end, cancelled, or failed. Called by the runs of `node-repair`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, is_cancelled_exception

Out = TypeVar("Out")


async def to_the_end(handle: workflow.ActivityHandle[Out]) -> Out:
    """Wait for the result of an activity, whatever is cancelled meanwhile."""
    while not handle.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(handle)
    return await handle


async def end(handle: workflow.ActivityHandle[Out]) -> Out | None:
    """Cancel an activity and wait until no try of it runs; its result, if it came true after all."""
    handle.cancel()
    try:
        return await handle
    except ActivityError as error:
        # A try that ended with "not yet" after the cancel has failed, but only for not being tried again.
        if is_cancelled_exception(error) or error.retry_state is RetryState.CANCEL_REQUESTED:
            return None
        raise


def why(error: ActivityError) -> str:
    """What an activity that failed said."""
    cause = error.cause
    return str(cause.message if isinstance(cause, ApplicationError) else cause or error)
