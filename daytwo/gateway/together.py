"""Makes one call of many that come within a moment: one thread and one transaction for what many nodes say at once.

`daytwo.gateway.app` takes the pulses of idle nodes with it, which are nearly all that a gateway has to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

LINGER_SECONDS: Final = 0.03
"""What one waits for the others. Nobody waits for the answer to a pulse; ten thousand nodes send five in that time."""
MOST: Final = 100
"""In one call: a store is not kept from others for longer than some ten milliseconds."""

Said = TypeVar("Said")
Answer = TypeVar("Answer")


class Together(Generic[Said, Answer]):
    """Calls `work` with what has come in since the first of them, and gives each its own answer, or all its error."""

    def __init__(
        self, work: Callable[[Sequence[Said]], Awaitable[Sequence[Answer]]], *, linger: float = LINGER_SECONDS
    ) -> None:
        self._work = work
        self._linger = linger
        self._waiting: list[tuple[Said, asyncio.Future[Answer]]] = []
        self._task: asyncio.Task[None] | None = None

    async def take(self, said: Said) -> Answer:
        """Return the answer to this one."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((said, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._all_that_wait())
        return await answer

    async def _all_that_wait(self) -> None:
        await asyncio.sleep(self._linger)
        while self._waiting:
            some, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            # Who has hung up meanwhile is not waited for.
            await self._call([(said, answer) for said, answer in some if not answer.done()])

    async def _call(self, some: Sequence[tuple[Said, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._work([said for said, _ in some])
        except Exception as error:
            for _, waiting in some:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), answer in zip(some, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)
