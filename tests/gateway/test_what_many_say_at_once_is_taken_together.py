"""Idle pulses that come within a moment are one transaction; each has its own answer, and nobody waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from daytwo.domain.errors import Unreachable
from daytwo.gateway.identity import revoke_tokens
from daytwo.gateway.together import MOST, Together
from daytwo.store.engine import Store
from tests.gateway.conftest import NODE, Agent, Time

IDLE = {"checks": None, "inventory": None}


class Work:
    """Doubles numbers; what it is called with is kept."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    async def __call__(self, said: Sequence[int]) -> list[int]:
        self.calls.append(list(said))
        if 0 in said:
            raise Unreachable("the store is away")
        return [2 * each for each in said]


async def test_each_has_its_own_answer_and_all_are_one_call() -> None:
    work = Work()
    together = Together(work, linger=0)
    assert await asyncio.gather(*map(together.take, (1, 2, 3))) == [2, 4, 6]
    assert work.calls == [[1, 2, 3]]


async def test_too_many_are_several_calls() -> None:
    work = Work()
    together = Together(work, linger=0)
    await asyncio.gather(*(together.take(each) for each in range(1, MOST + 3)))
    assert [len(call) for call in work.calls] == [MOST, 2]


async def test_a_failure_is_everybodys_and_the_next_are_taken() -> None:
    together = Together(Work(), linger=0)
    failed = await asyncio.gather(together.take(0), together.take(1), return_exceptions=True)
    assert [type(each) for each in failed] == [Unreachable, Unreachable]
    assert await together.take(4) == 8


async def test_who_hangs_up_is_left_out() -> None:
    work = Work()
    together = Together(work, linger=0.01)
    gone, stays = asyncio.create_task(together.take(1)), asyncio.create_task(together.take(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stays == 4
    assert work.calls == [[2]]


@pytest.mark.parametrize("name", [NODE, "gpu-02"])
def test_a_token_that_was_good_a_moment_ago_is_not_believed(
    agent: Agent, declared: Store, now: Time, name: str
) -> None:
    agent.pulse()
    agent.pulse(**IDLE)
    revoke_tokens(declared, "east", NODE, now=now())
    agent.name = name
    assert agent.pulse(**IDLE).status_code == 401
