"""The CLI's side of the service's Unix socket. What costs more than all of `--help` is imported where it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import click

import daytwo
from daytwo.cli import exit_codes, output
from daytwo.cli.failure import Failure, from_problem

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

ANSWER_SECONDS = 20.0
NEXT = {
    "/v1/repairs": "daytwo repairs list",
    "/v1/nodes": "daytwo nodes list",
    "/v1/node-": "daytwo nodes list",
    "/v1/tokens": "daytwo nodes list",
    "/v1/revocations": "daytwo nodes list",
    "/v1/policy": "daytwo faults list",
    "/v1/faults": "daytwo faults list",
    "/v1/findings": "daytwo findings list",
    "/v1/freezes": "daytwo clusters list",
    "/v1/thaws": "daytwo freeze --list",
    "/v1/clusters": "daytwo clusters list",
}
HELP = "daytwo help exit-codes"


class Service:
    """A connection to the service. Every call raises `Failure` with the exit code that the service named."""

    def __init__(self, socket: Path) -> None:
        import ssl

        import httpx

        self.socket = socket
        self._unreachable: type[Exception] = httpx.TransportError
        self._is_compared = False
        self._http = httpx.Client(
            # A socket needs no certificates; loading the system's would take longer than the call.
            transport=httpx.HTTPTransport(uds=str(socket), verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)),
            base_url="http://daytwo",
            timeout=ANSWER_SECONDS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """Read; `None` and empty values are left out of the query. `wait` prolongs the time allowed."""
        asked = {name: value for name, value in query.items() if value not in (None, (), "", False)}
        return self._call("GET", path, params=asked, timeout=ANSWER_SECONDS + float(query.get("wait") or 0))

    def post(self, path: str, body: dict[str, Any], following: str | None = None) -> Any:
        """Write; `following` is the command to try next when it fails."""
        return self._call("POST", path, json=body, following=following)

    def _call(self, method: str, path: str, *, following: str | None = None, **more: Any) -> Any:
        from urllib.parse import quote

        try:
            # A name that was mistyped may hold anything.
            answer = self._http.request(method, quote(path, errors="replace"), **more)
        except self._unreachable as error:
            raise _away(self.socket, error) from error
        self._compare(answer.headers.get("daytwo-version", "older than 0.2"))
        if answer.is_success:
            return answer.json()
        body = _body(answer)
        raise from_problem(body, following or _following(path))

    def _compare(self, version: str) -> None:
        """Say, once, that the service is of another version: it may not know what is asked, or mean it otherwise."""
        if version != daytwo.__version__ and not self._is_compared:
            output.note(f"This is daytwo {daytwo.__version__}; the service is daytwo {version}.")
        self._is_compared = True


def connect() -> Service:
    """The service that this command's options and environment point to."""
    from pathlib import Path

    from daytwo import settings

    given = click.get_current_context().find_root().obj["socket"]
    return Service(Path(given) if given else settings.load().service_socket)


def _body(answer: Any) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _following(path: str) -> str:
    return next((command for prefix, command in NEXT.items() if path.startswith(prefix)), HELP)


def _away(socket: Path, error: Exception) -> Failure:
    from daytwo import settings
    from daytwo.one_at_a_time import holder

    here = settings.load()
    why = "There is no such socket." if not socket.exists() else f"{type(error).__name__}: {error}"
    following = "daytwo up (this machine), or DAYTWO_STATE_DIR=… / --socket … (another installation)"
    if socket == here.service_socket and (process := holder(here.state_dir)):
        why += f" daytwo is up on {here.state_dir} (process {process}), so its service starts again, or binds anew."
        following = f"the same command in a few seconds; else see {here.state_dir / 'log'}/service.log"
    return Failure(
        f"the service does not answer on {socket}", why=why, following=following, exit_code=exit_codes.UNREACHABLE
    )
