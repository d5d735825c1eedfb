"""Counters of one gateway process, in the text form that Prometheus reads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daytwo.intake import Effect


class Metrics:
    """What this process has done since it started. Used from the event loop only."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._started = monotonic()
        self.requests: Counter[int] = Counter()
        self.records: Counter[str] = Counter(accepted=0, duplicate=0, refused=0)
        self.pulses = 0

    def count_records(self, effects: Iterable[Effect]) -> None:
        """Count records that were taken: new ones, and those that were known."""
        for effect in effects:
            self.records["duplicate" if effect is Effect.DUPLICATE else "accepted"] += 1

    def text(self) -> str:
        """Return all of it in exposition format 0.0.4."""
        lines = [
            *_head("daytwo_gateway_requests_total", "counter", "Requests by status code."),
            *(f'daytwo_gateway_requests_total{{code="{code}"}} {n}' for code, n in sorted(self.requests.items())),
            *_head("daytwo_gateway_records_total", "counter", "Records of nodes; refused counts messages."),
            *(f'daytwo_gateway_records_total{{result="{name}"}} {n}' for name, n in sorted(self.records.items())),
            *_head("daytwo_gateway_pulses_total", "counter", "Pulses that were taken."),
            f"daytwo_gateway_pulses_total {self.pulses}",
            *_head("daytwo_gateway_uptime_seconds", "gauge", "Seconds since this process started."),
            f"daytwo_gateway_uptime_seconds {self._monotonic() - self._started:.3f}",
        ]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


class CountRequests:
    """Middleware: every response is counted by its code."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on and look at the status."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope["app"].state.gateway.metrics.requests[message["status"]] += 1
            await send(message)

        await self._app(scope, receive, counted)
