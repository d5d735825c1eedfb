"""Reads a body without trusting it: never more than allowed, never longer than allowed, and only as the model says."""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from daytwo.gateway.problems import Problem, malformed
from daytwo.wire import MAX_BODY_BYTES

READ_SECONDS: Final = 20.0
"""A body is at most 256 KiB; a node that takes longer holds a connection for nothing."""

Model = TypeVar("Model", bound=BaseModel)


async def read_body(request: Request, model: type[Model], *, seconds: float = READ_SECONDS) -> Model:
    """Return the body as `model`. Raises `Problem`: 400 cut off, 408 too slow, 413 too large, 422 wrong."""
    try:
        async with asyncio.timeout(seconds):
            body = await _read(request)
    except ClientDisconnect:
        raise Problem(400, "the body ended early") from None
    except TimeoutError:
        raise Problem(408, f"the body did not arrive within {seconds:g} s") from None
    try:
        # Its parser refuses invalid UTF-8, lone surrogates and more than some hundred levels before anything is built.
        return model.model_validate_json(body)
    except ValidationError as error:
        raise malformed(error) from None


async def _read(request: Request) -> bytes:
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > MAX_BODY_BYTES:
        raise _too_large()
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise _too_large()
    return bytes(body)


def _too_large() -> Problem:
    # The rest is not read: whoever sends without end is cut off.
    return Problem(413, f"body: more than {MAX_BODY_BYTES} bytes", headers={"Connection": "close"})
