"""A try is heard of while it lasts, and ends whole although it is cancelled; only a shutdown tears it off."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.boundary import heard
from activities.signatures import ALL, Signature
from daytwo.domain.errors import NotYet


class Try:
    """One try, which lasts until it is `released`."""

    def __init__(self) -> None:
        self.begun, self.released = asyncio.Event(), asyncio.Event()
        self.beats = 0
        self.environment = ActivityEnvironment()
        self.environment.info = dataclasses.replace(
            ActivityEnvironment.default_info(), heartbeat_timeout=timedelta(seconds=0.04)
        )
        self.environment.on_heartbeat = self._beat

    def _beat(self, *_: Any) -> None:
        self.beats += 1
        if self.beats == 3:
            self.released.set()

    async def last(self) -> str:
        self.begun.set()
        await self.released.wait()
        return "done"

    async def fail(self) -> str:
        await self.last()
        raise NotYet("not yet")

    def run(self, work: Any) -> asyncio.Task[str]:
        async def run() -> str:
            return await heard(work())

        return asyncio.ensure_future(self.environment.run(run))


async def test_a_try_that_lasts_is_heard_of() -> None:
    one = Try()
    assert await asyncio.wait_for(one.run(one.last), 10) == "done"
    assert one.beats == 3


async def test_a_try_that_is_cancelled_ends_as_it_would_have() -> None:
    one = Try()
    running = one.run(one.last)
    await one.begun.wait()
    one.environment.cancel()
    assert await asyncio.wait_for(running, 10) == "done"


async def test_a_try_that_is_cancelled_says_what_it_found() -> None:
    one = Try()
    running = one.run(one.fail)
    await one.begun.wait()
    one.environment.cancel()
    with pytest.raises(NotYet):
        await asyncio.wait_for(running, 10)


async def test_a_worker_that_must_go_tears_its_tries_off() -> None:
    one = Try()
    one.environment.on_heartbeat = lambda *_: None
    running = one.run(one.last)
    await one.begun.wait()
    one.environment.worker_shutdown()
    one.environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)


@pytest.mark.parametrize("signature", ALL, ids=lambda each: each.name)
def test_a_try_is_missed_long_before_its_time_is_over(signature: Signature[Any, Any]) -> None:
    assert signature.options.heartbeat <= timedelta(seconds=10) < signature.options.attempt
