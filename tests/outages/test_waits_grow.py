"""Whoever tries again waits longer each time, not in step with others; and a peer that hangs is tried by one."""

from __future__ import annotations

import asyncio

import pytest

from daytwo.backoff import Backoff, Gate, patiently
from daytwo.domain.errors import BadInput, Unreachable


def test_waits_are_doubled_up_to_the_longest() -> None:
    backoff = Backoff(1.0, 30.0)
    waits = [backoff.next() for _ in range(10)]
    assert all(0.75 * base <= wait <= 1.25 * base for base, wait in zip((1, 2, 4, 8, 16), waits, strict=False))
    assert all(22.5 <= wait <= 37.5 for wait in waits[5:])


def test_no_two_wait_alike() -> None:
    assert len({Backoff(10.0).next() for _ in range(50)}) > 40


def test_what_has_worked_begins_anew() -> None:
    backoff = Backoff(1.0)
    _ = [backoff.next() for _ in range(8)]
    backoff.reset()
    assert backoff.next() <= 1.25


class Peer:
    """A peer that is away, and a clock."""

    def __init__(self) -> None:
        self.now, self.tried = 0.0, 0
        self.gate = Gate("Temporal", Backoff(1.0, 30.0), clock=lambda: self.now)

    def call(self) -> None:
        self.gate.check()
        self.tried += 1
        self.gate.failed("it hangs")


def test_minutes_of_calls_to_a_peer_that_is_away_are_a_few_tries() -> None:
    peer = Peer()
    for _ in range(10_000):
        peer.now += 0.06
        try:
            peer.call()
        except Unreachable:
            continue
    assert peer.tried < 40


def test_while_one_tries_the_others_fail_at_once() -> None:
    peer = Peer()
    peer.call()
    peer.now += 2
    peer.gate.check()
    with pytest.raises(Unreachable, match="Temporal does not answer: it hangs"):
        peer.gate.check()


def test_many_that_fail_together_are_one_failure() -> None:
    peer = Peer()
    for _ in range(8):
        peer.gate.failed("it hangs")
    peer.now += 1.3
    peer.gate.check()


def test_a_peer_that_answers_is_open_for_all() -> None:
    peer = Peer()
    peer.call()
    peer.gate.answered()
    assert [peer.gate.check() for _ in range(3)] == [None] * 3


async def test_what_a_process_needs_is_waited_for_and_an_error_of_its_own_is_not() -> None:
    answers: list[Exception | str] = [Unreachable("no"), Unreachable("no"), "here", BadInput("url: found x")]
    slept: list[float] = []

    async def call() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    assert (await patiently("the store", call, sleep=sleep), len(slept)) == ("here", 2)
    with pytest.raises(BadInput):
        await patiently("the store", call, sleep=sleep)
