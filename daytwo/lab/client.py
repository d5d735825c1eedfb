"""A person's hand in the simulated fleet: what `daytwo lab` calls. Standard library only: the CLI starts fast."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from daytwo.domain.errors import BadInput, DaytwoError, Failed, NotFound, Refused, UnknownAnswer, Unreachable

TIMEOUT_SECONDS = 10.0

_ERRORS: dict[int, type[DaytwoError]] = {403: Refused, 404: NotFound, 422: BadInput}


class LabClient:
    """The lab that listens on the Unix socket `path`.

    Every method raises `Unreachable` if nobody listens, `NotFound` for an unknown node, `BadInput` for a wrong field.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def status(self) -> dict[str, Any]:
        """Return every node with its power, its scheduler states, faults and jobs."""
        return self._call("GET", "/status")

    def break_node(self, node: str, fault: str, **options: Any) -> dict[str, Any]:
        """Inject a fault; `options` are the fields of `daytwo.lab.faults.Break`. Returns the new status."""
        return self._call("POST", "/break", {"node": node, "fault": fault, **options})

    def heal_node(self, node: str) -> dict[str, Any]:
        """End every fault of a node. Returns the new status."""
        return self._call("POST", "/heal", {"node": node})

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = _Connection(self._path)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return _read(answer.status, answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"no lab answers at {self._path} ({error}); `daytwo lab up` starts one") from error
        finally:
            connection.close()


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("lab", timeout=TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _read(status: int, data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError as error:
        raise UnknownAnswer(f"the lab answered {status}: {data[:200]!r}") from error
    if status == http.client.OK and isinstance(body, dict):
        return body
    raise _ERRORS.get(status, Failed)(_message(body))


def _message(body: Any) -> str:
    if isinstance(body, dict) and "error" in body:
        return str(body["error"])
    wrong = body.get("detail") if isinstance(body, dict) else None
    if isinstance(wrong, list):
        return "; ".join(f"{item['loc'][-1]}: found {item.get('input')!r}; {item['msg']}" for item in wrong)
    return str(body)
