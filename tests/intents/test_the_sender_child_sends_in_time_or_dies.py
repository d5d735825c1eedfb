"""The child that arms an alarm before the last look: whatever is paused, nothing is sent after the deadline."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daytwo import sender
from daytwo.domain.errors import NotYet
from daytwo.domain.seams import Command, Request
from daytwo.sending import Sender

Child = subprocess.Popen[bytes]

SOON = 1.5
"""A deadline that an interpreter on a busy machine still arms before."""


def an_armed_child(argv: tuple[str, ...], seconds: float) -> Child:
    """A sender child, up to the point where it waits for the last word."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", sender.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    order = {"deadline": time.monotonic() + seconds, "send": Command(argv=argv).model_dump(mode="json")}
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(order).encode() + b"\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"armed\n"
    return child


def end(child: Child, word: bytes = b"") -> int:
    """Say `word`, close its input and return the exit status."""
    child.communicate(word)
    return child.returncode


def test_the_word_go_lets_the_command_run(tmp_path: Path) -> None:
    child = an_armed_child(("touch", str(tmp_path / "sent")), 10)
    assert end(child, b"go\n") == 0
    assert (tmp_path / "sent").exists()


def test_a_parent_that_dies_before_the_word_sends_nothing(tmp_path: Path) -> None:
    child = an_armed_child(("touch", str(tmp_path / "sent")), 10)
    assert end(child) == sender.NOT_SENT
    assert not (tmp_path / "sent").exists()


def test_a_parent_that_is_stopped_past_the_deadline_sends_nothing(tmp_path: Path) -> None:
    child = an_armed_child(("touch", str(tmp_path / "sent")), SOON)
    assert child.wait(5) == -signal.SIGALRM
    end_of_input = end(child)
    assert (end_of_input, (tmp_path / "sent").exists()) == (-signal.SIGALRM, False)


@pytest.mark.parametrize("attempt", range(3))
def test_a_child_that_is_stopped_past_the_deadline_sends_nothing(tmp_path: Path, attempt: int) -> None:
    child = an_armed_child(("touch", str(tmp_path / "sent")), SOON)
    os.kill(child.pid, signal.SIGSTOP)
    assert child.stdin is not None
    child.stdin.write(b"go\n")
    child.stdin.flush()
    time.sleep(SOON + 0.2)
    os.kill(child.pid, signal.SIGCONT)
    assert child.wait(5) == -signal.SIGALRM
    end(child)
    assert not (tmp_path / "sent").exists()


def test_the_alarm_ends_a_command_that_hangs() -> None:
    started = time.monotonic()
    assert end(an_armed_child(("sleep", "30"), SOON), b"go\n") == -signal.SIGALRM
    assert time.monotonic() - started < 10


async def test_a_failing_command_tells_its_words() -> None:
    send = Command(argv=("sh", "-c", "echo no such node >&2; exit 3"))
    async with Sender(send, 10) as child:
        sent = await child.go()
    assert (sent.ok, sent.error) == (False, "exit status 3: no such node")


async def test_leaving_without_the_word_sends_nothing(tmp_path: Path) -> None:
    async with Sender(Command(argv=("touch", str(tmp_path / "sent"))), 10):
        pass
    assert not (tmp_path / "sent").exists()


async def test_one_that_is_given_up_before_it_is_armed_is_gone() -> None:
    sender_child = Sender(Command(argv=("true",)), 10)
    entering = asyncio.create_task(sender_child.__aenter__())
    for _ in range(100_000):
        if sender_child._child is not None:
            break
        await asyncio.sleep(0)
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    assert sender_child._child is not None
    assert sender_child._child.returncode == -signal.SIGKILL


async def test_one_that_ends_by_itself_before_it_is_armed_is_told_as_such(tmp_path: Path) -> None:
    """Its alarm, and who gives it up, come at the same moment; sometimes nobody has told asyncio yet that it ended."""
    for _ in range(20):
        with pytest.raises(NotYet, match="could not be armed in time"):
            async with Sender(Command(argv=("touch", str(tmp_path / "sent"))), -1):
                pass
    assert not (tmp_path / "sent").exists()


async def test_a_request_goes_over_a_unix_socket(tmp_path: Path) -> None:
    got: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        got.extend((head.splitlines()[0], await reader.readexactly(len('{"act": "drain"}'))))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(answer, tmp_path / "lab.sock"):
        send = Request(socket=str(tmp_path / "lab.sock"), path="/acts", body={"act": "drain"})
        async with Sender(send, 10) as child:
            sent = await child.go()
    assert sent.ok
    assert got == [b"POST /acts HTTP/1.1", b'{"act": "drain"}']
