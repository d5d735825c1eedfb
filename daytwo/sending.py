"""The parent's side of the sender child: start it armed, then let it send or let it go."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from types import TracebackType
from typing import Final, NamedTuple, Self

from daytwo import sender
from daytwo.domain.errors import NotYet
from daytwo.domain.seams import Program, Send

ERROR_CHARS: Final = 500
LATE: Final = "the deadline came before the answer"


class Sent(NamedTuple):
    """How a send ended. Not `ok` does not mean that nothing happened. `answer` and `status` are a program's."""

    ok: bool
    error: str
    answer: str = ""
    status: int | None = None


def program_ended(out: bytes) -> Sent:
    """How an operator's program ended, from what the child printed of it: well only with status 0."""
    try:
        told = json.loads(out)
        status, said, error = told["status"], told.get("said", ""), told["error"]
    except (ValueError, KeyError, TypeError):
        return Sent(False, "the child that ran the program said nothing of it")
    how = error if status is None else f"exit status {status}: {error or said}"
    return Sent(status == 0, "" if status == 0 else how[:ERROR_CHARS], said or error, status)


class Sender:
    """One child, armed on entry; it dies on exit if it was never told to go."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._deadline = time.monotonic() + seconds
        self._child: Process | None = None

    async def __aenter__(self) -> Self:
        self._child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", sender.__file__), stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        try:
            await self._arm(self._child)
        except BaseException:
            # Nobody comes to the end of a block that was not entered.
            await self._end(self._child)
            raise
        return self

    async def _arm(self, child: Process) -> None:
        order = {"deadline": self._deadline, "send": self._send.model_dump(mode="json", context={"reveal": True})}
        if child.stdin is None or child.stdout is None:
            raise NotYet("the sender child has no pipes", 1.0)
        child.stdin.write(json.dumps(order).encode() + b"\n")
        if await child.stdout.readline() != b"armed\n":
            raise NotYet("the sender child could not be armed in time", 1.0)

    async def go(self) -> Sent:
        """Say the last word and wait for the end: the command's own, or the alarm's."""
        if self._child is None:
            raise NotYet("the sender child was not started", 1.0)
        out, err = await self._child.communicate(b"go\n")
        code = self._child.returncode
        if code == -signal.SIGALRM:
            return Sent(False, LATE)
        if isinstance(self._send, Program):
            return program_ended(out)
        text = (err or out).decode(errors="replace").strip()[:ERROR_CHARS]
        return Sent(code == 0, "" if code == 0 else f"exit status {code}: {text}")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            await self._end(self._child)

    @staticmethod
    async def _end(child: Process) -> None:
        if child.returncode is None:
            # Not told to go: it would leave by itself at the end of its input; do not wait for that.
            with suppress(ProcessLookupError):  # its alarm was faster, and asyncio has not said so yet
                os.kill(child.pid, signal.SIGKILL)
            await child.wait()
