"""How the simulated adapters read from a lab: one GET over its Unix socket, or an error that says what is not known."""

from __future__ import annotations

import ssl
from typing import Any, Final

import httpx

from daytwo.domain.errors import NotFound, UnknownAnswer, Unreachable

TIMEOUT_SECONDS: Final = 5.0

# A transport loads the system's certificates unless it is given a context; a Unix socket needs none.
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def rows(
    socket: str,
    path: str,
    *,
    key: str,
    params: dict[str, str] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> list[dict[str, Any]]:
    """Return the rows under `key` of the answer.

    Raises `Unreachable` if nobody answers in time, `NotFound` for a 404, and `UnknownAnswer` for everything
    else that is not a whole list: an error inside a good answer too.
    """
    answer = await _get(socket, path, params, timeout_seconds)
    if answer.status_code == httpx.codes.NOT_FOUND:
        raise NotFound(_message(answer))
    if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise Unreachable(f"lab at {socket}: {path} answered {answer.status_code}: {answer.text[:200]}")
    body = _json(answer, path)
    found = body.get(key)
    if answer.status_code != httpx.codes.OK or body.get("errors") or not isinstance(found, list):
        raise UnknownAnswer(f"lab: {path} answered {answer.status_code} without a whole list of {key}: {body!s:.200}")
    return found


async def _get(socket: str, path: str, params: dict[str, str] | None, seconds: float) -> httpx.Response:
    transport = httpx.AsyncHTTPTransport(uds=socket, verify=_NO_TLS)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://lab", timeout=seconds) as client:
            return await client.get(path, params=params)
    except httpx.DecodingError as error:
        raise UnknownAnswer(f"lab at {socket}: {path}: {error}") from error
    except httpx.TransportError as error:
        raise Unreachable(f"lab at {socket}: {path}: {type(error).__name__} {error}") from error


def _json(answer: httpx.Response, path: str) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError as error:
        raise UnknownAnswer(f"lab: {path} answered what is not JSON: {answer.text[:200]!r}") from error
    if not isinstance(body, dict):
        raise UnknownAnswer(f"lab: {path} answered what is not an object: {answer.text[:200]!r}")
    return body


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]
