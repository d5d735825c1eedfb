"""How the gateway says no: JSON with `error`, and `field` where one is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from starlette.responses import JSONResponse

from daytwo.gateway.models import where


class Problem(Exception):
    """An answer that is not 200. `more` is added to the body."""

    def __init__(
        self,
        status: int,
        error: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error, "field": field, **(more or {})}
        self.headers = dict(headers or {})

    def response(self) -> JSONResponse:
        """The answer itself."""
        return JSONResponse(self.body, self.status, self.headers)


def malformed(error: ValidationError) -> Problem:
    """Name the first field that is wrong, what was found and what is allowed."""
    first = error.errors(include_url=False, include_context=False)[0]
    field = where(first["loc"])
    found = "" if first["type"] in ("missing", "json_invalid") else f", found {_short(first['input'])}"
    return Problem(422, f"{field or 'body'}: {first['msg']}{found}", field=field or None)


def too_fast(seconds: int) -> Problem:
    """The node speaks too fast; it may try again after `seconds`."""
    return Problem(429, f"too fast: try again in {seconds} s", headers={"Retry-After": str(seconds)})


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
