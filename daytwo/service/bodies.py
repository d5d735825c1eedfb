"""Bounds what a request may carry: a body is read into memory before anybody asks who sent it."""

from __future__ import annotations

from typing import Final

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""The largest is a cluster definition: 2,000,000 characters of YAML."""


class BoundedBodies:
    """Middleware: a body that is longer is refused with 413 while it comes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes. Raises `HTTPException` inside the route that reads it."""
        came = 0

        async def counted() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > MAX_BODY_BYTES:
                raise HTTPException(413, f"body: more than {MAX_BODY_BYTES} bytes", headers={"Connection": "close"})
            return message

        await self._app(scope, counted, send)
