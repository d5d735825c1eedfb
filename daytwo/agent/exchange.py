"""Whose turn it is to speak, and what an answer means: the agent's side of `daytwo.wire`, without a network.

`core` asks `next_call` and hands back each reply. One call at a time; findings go before pulses.

| Answer          | What the agent does                                                                              |
|-----------------|--------------------------------------------------------------------------------------------------|
| 200             | forgets what is acknowledged; comes back when it is told to                                      |
| 409             | numbers what is left from 1 and asks for a new stream                                            |
| 401, 403, 404   | says it once, tries again each minute: a token may be issued, rotated or corrected meanwhile     |
| 413, 422        | halves the batch until it holds one record, and sets that one aside                              |
| others, or none | tries again after 1, 2, 4 … 60 s, jittered                                                       |
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from daytwo.agent.seams import Call, Reply
from daytwo.agent.spool import Spool
from daytwo.wire import MAX_BODY_BYTES, MAX_RECORDS, Record

BODY_BYTES: Final = MAX_BODY_BYTES * 3 // 4
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 60.0
REFUSED_RETRY: Final = 60.0
CALLS_AT_ONCE: Final = 20
CALLS_PER_SECOND: Final = 4.0
"""A little less than the gateway allows one node."""
SHORTEST_PULSE: Final = 0.2
LONGEST_PULSE: Final = 3_600.0

Say = Callable[[str], None]


class Exchange:
    """The state of the talk with one gateway. All times are `Clock.uptime`."""

    def __init__(self, spool: Spool, *, pulse_seconds: float, say: Say) -> None:
        self._spool, self._say = spool, say
        self._pulse_seconds = pulse_seconds
        self._random = random.SystemRandom()
        self._pulse_at = 0.0
        self._retry_at = 0.0
        self._pace = _Pace()
        self._failures = 0
        self._trouble = ""
        self._batch_limit = MAX_RECORDS
        self._batch: list[Record] = []
        self.in_flight = False

    def next_call(self, uptime: float, envelope: dict[str, Any], pulse: Callable[[], dict[str, Any]]) -> Call | None:
        """Return the call to make now. `envelope` is in every call; `pulse` builds the rest of a pulse."""
        if self.in_flight or uptime < max(self._retry_at, self._pace.free_at(uptime)):
            return None
        call = self._findings(envelope) or self._pulse(uptime, envelope, pulse)
        if call is not None:
            self._pace.take(uptime)
            self.in_flight = True
        return call

    def wait(self, uptime: float) -> float:
        """Return the seconds until `next_call` may have something; a reply ends the wait earlier."""
        if self.in_flight:
            return LONGEST_PULSE
        soonest = 0.0 if len(self._spool) else self._pulse_at
        return max(0.0, max(soonest, self._retry_at, self._pace.free_at(uptime)) - uptime)

    def hurry(self, uptime: float) -> None:
        """Something changed: pulse now."""
        self._pulse_at = min(self._pulse_at, uptime)

    def on_reply(self, call: Call, reply: Reply, uptime: float) -> bool:
        """Take what came of a call; return True if it went through."""
        self.in_flight = False
        if reply.status == 200:
            return self._on_success(call, reply.body, uptime)
        if reply.status in (413, 422):
            self._on_refused_content(call, reply, uptime)
        elif reply.status == 409 and self._spool.stream:
            self._spool.restart_stream()
        else:
            self._on_trouble(call, reply, uptime)
        return False

    def _findings(self, envelope: dict[str, Any]) -> Call | None:
        self._batch = self._spool.batch(self._batch_limit, BODY_BYTES)
        if not self._batch:
            return None
        return Call("findings", {**envelope, "stream": self._spool.stream, "records": self._batch})

    def _pulse(self, uptime: float, envelope: dict[str, Any], pulse: Callable[[], dict[str, Any]]) -> Call | None:
        if uptime < self._pulse_at:
            return None
        numbers = {"stream": self._spool.stream, "sequence": self._spool.last_sequence}
        return Call("pulse", {**envelope, **numbers, **pulse()})

    def _on_success(self, call: Call, body: dict[str, Any], uptime: float) -> bool:
        if call.what == "findings" and not self._acknowledged(body):
            self._on_trouble(call, Reply(0, error="the answer acknowledges nothing"), uptime)
            return False
        if self._trouble:
            self._say("the gateway answers again")
        self._failures, self._trouble = 0, ""
        self._come_back(call, body.get("come_back_seconds"), uptime)
        return True

    def _acknowledged(self, body: dict[str, Any]) -> bool:
        up_to, stream = body.get("acknowledged"), body.get("stream")
        if not isinstance(up_to, int) or not isinstance(stream, int) or up_to < self._batch[0]["sequence"]:
            return False
        if stream != self._spool.stream:
            self._spool.use_stream(stream)
        self._spool.acknowledge(up_to)
        self._batch_limit = min(MAX_RECORDS, self._batch_limit * 2)
        return True

    def _come_back(self, call: Call, seconds: Any, uptime: float) -> None:
        told = seconds if isinstance(seconds, int | float) and not isinstance(seconds, bool) else self._pulse_seconds
        # Never later than told, so that jitter alone cannot make a node look silent.
        delay = max(SHORTEST_PULSE, min(told, LONGEST_PULSE)) * self._random.uniform(0.9, 1.0)
        next_pulse = uptime + delay
        self._pulse_at = next_pulse if call.what == "pulse" else min(self._pulse_at, next_pulse)

    def _on_refused_content(self, call: Call, reply: Reply, uptime: float) -> None:
        # A 422 about another field is no record's fault: setting all of them aside one by one would lose them.
        about_records = call.what == "findings" and (reply.status == 413 or "records" in reply.error)
        if not about_records:
            self._on_trouble(call, reply, uptime)
        elif len(self._batch) > 1:
            self._batch_limit = len(self._batch) // 2
        else:
            self._say(f"the gateway refuses a record, it is set aside: {reply.error}: {self._batch[0]}")
            self._spool.set_aside(self._batch[0])

    def _on_trouble(self, call: Call, reply: Reply, uptime: float) -> None:
        trouble = f"{reply.status or 'no answer'} {reply.error}".strip()
        if trouble != self._trouble:
            self._say(f"{call.what} not delivered: {trouble}")
        self._trouble = trouble
        delay = min(LAST_RETRY, FIRST_RETRY * 2 ** min(self._failures, 10))
        if reply.status in (401, 403, 404):
            delay = REFUSED_RETRY
        self._failures += 1
        self._retry_at = uptime + delay * self._random.uniform(0.5, 1.0)


class _Pace:
    """How fast calls may follow each other: some at once, then so many a second."""

    def __init__(self) -> None:
        self._left = float(CALLS_AT_ONCE)
        self._at = 0.0

    def free_at(self, uptime: float) -> float:
        """Return the uptime from which on a call may be made."""
        missing = 1.0 - self._now(uptime)
        return uptime + missing / CALLS_PER_SECOND if missing > 1e-6 else uptime

    def take(self, uptime: float) -> None:
        """A call is made."""
        self._left, self._at = self._now(uptime) - 1.0, uptime

    def _now(self, uptime: float) -> float:
        return min(CALLS_AT_ONCE, self._left + max(0.0, uptime - self._at) * CALLS_PER_SECOND)
