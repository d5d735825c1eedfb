"""Errors as the API answers them: status, `error`, `type`, `exit_code`; `field` for bad input; `why` and `next`."""

from __future__ import annotations

import logging
import re
from typing import Any, Final, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from daytwo.domain.errors import BadInput, DaytwoError
from daytwo.domain.plain_words import allowed_by
from daytwo.domain.vocabulary import Frozen

log = logging.getLogger(__name__)

LONGEST_FOUND: Final = 200
EXIT_CODES: Final = {404: 3, 413: BadInput.exit_code}
# BadInput messages begin with the field: "reason: found nothing; …".
_FIELD = re.compile(r"([A-Za-z_][\w.\[\]-]*): ")


class Problem(Frozen):
    """The body of every answer that is not a success. `why` and `next` stand where its type alone would mislead."""

    error: str
    type: str
    exit_code: int
    field: str | None = None
    why: str | None = None
    next: str | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        403: "A rule forbids it.",
        404: "The named thing does not exist.",
        409: "It has changed meanwhile.",
        413: "The body is too long.",
        422: "The input breaks a rule.",
        503: "Not now.",
    }.items()
}
"""For OpenAPI."""


def install(app: FastAPI) -> None:
    """Make `app` answer every error as a `Problem`."""
    app.add_exception_handler(DaytwoError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def problem(error: DaytwoError) -> JSONResponse:
    """The answer that stands for one of our errors."""
    text = str(error)
    named = _FIELD.match(text) if isinstance(error, BadInput) else None
    body = Problem(
        error=text,
        type=type(error).__name__,
        exit_code=error.exit_code,
        field=named[1] if named else None,
        why=error.why or None,
        next=error.following or None,
    )
    return JSONResponse(body.model_dump(exclude_none=True), status_code=error.http_status)


async def _ours(_request: Request, error: Exception) -> JSONResponse:
    return problem(cast(DaytwoError, error))


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    first = cast(RequestValidationError, error).errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "body"
    found, allowed = repr(first.get("input")), allowed_by(cast(ErrorDetails, first))
    if allowed.startswith("found "):
        # Our own validators say both.
        found, _, allowed = allowed.removeprefix("found ").partition(", allowed: ")
    return problem(BadInput(f"{field}: found {_short(found)}; allowed is {allowed}"))


def _short(found: str) -> str:
    return found if len(found) <= LONGEST_FOUND else f"{found[: LONGEST_FOUND - 1]}…"


async def _http(_request: Request, error: Exception) -> JSONResponse:
    said = cast(HTTPException, error)
    if said.status_code == 400:
        return problem(BadInput("body: found bytes that cannot be read; allowed is JSON in UTF-8"))
    body = Problem(error=str(said.detail), type="HTTP", exit_code=EXIT_CODES.get(said.status_code, 1))
    return JSONResponse(body.model_dump(exclude_none=True), status_code=said.status_code, headers=said.headers)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    body = Problem(error="the service failed; its log says why", type="Unexpected", exit_code=1)
    return JSONResponse(body.model_dump(exclude_none=True), status_code=500)
