"""The way to the gateway: one HTTP connection and one call at a time, in a thread. What answers mean: `exchange`."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final
from urllib.parse import quote, urlsplit

from daytwo.agent.seams import Call, Reply

TIMEOUT_SECONDS: Final = 15.0
LONGEST_ANSWER: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where the gateway is and who is speaking. The token is read from its file at every call: it may be rotated."""

    url: str
    node: str
    token_file: Path
    ca_file: Path | None = None


class HttpLink:
    """Implements the seam `Link`. `wake` is called when a reply is there."""

    def __init__(self, address: Address, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._replies: SimpleQueue[Reply] = SimpleQueue()
        self._gateway = Gateway(address)
        self._thread = threading.Thread(target=self._serve, name="link", daemon=True)
        self._thread.start()

    def send(self, call: Call) -> None:
        """Start a call; its reply is there within the timeout."""
        self._calls.put(call)

    def collect(self) -> Reply | None:
        """Return a reply, once."""
        return None if self._replies.empty() else self._replies.get()

    def close(self) -> None:
        """Let the thread end after the call that is under way."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            self._replies.put(self._gateway.post(call))
            self._wake()
        self._gateway.close()


class Gateway:
    """A client of the gateway that keeps its connection. For one thread."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._url = urlsplit(address.url)
        # Built once: it costs some 50 ms.
        self._tls = ssl.create_default_context(cafile=address.ca_file) if self._url.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None

    def post(self, call: Call) -> Reply:
        """Make one call. Never raises: status 0 is no answer, or one that cannot be read."""
        try:
            return self._post(call)
        except Exception as error:  # without a reply nothing would ever be sent again
            self.close()
            return Reply(0, error=f"{self._address.url}: {type(error).__name__}: {error}")

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, call: Call) -> Reply:
        body = json.dumps(call.body, ensure_ascii=False, separators=(",", ":")).encode()
        path = f"{self._url.path.rstrip('/')}/v1/nodes/{quote(self._address.node, safe='')}/{call.what}"
        headers = {"Authorization": f"Bearer {self._token()}", "Content-Type": "application/json"}
        response = self._exchange(path, body, headers)
        data = response.read(LONGEST_ANSWER + 1)
        if response.length and len(data) <= LONGEST_ANSWER:
            raise http.client.IncompleteRead(data, response.length)
        if response.length or response.will_close:
            self.close()
        return read_reply(response.status, data)

    def _exchange(self, path: str, body: bytes, headers: dict[str, str]) -> http.client.HTTPResponse:
        if self._connection is not None:
            # A kept connection may have been closed by the other side: then the call starts on a new one.
            with suppress(ConnectionError, http.client.BadStatusLine):
                return _request(self._connection, path, body, headers)
            self.close()
        self._connection = self._new_connection()
        return _request(self._connection, path, body, headers)

    def _new_connection(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._tls is not None:
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)

    def _token(self) -> str:
        token = self._address.token_file.read_text(encoding="utf-8").strip()
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError(f"{self._address.token_file} holds no token")
        return token


def _request(
    connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]
) -> http.client.HTTPResponse:
    connection.request("POST", path, body, headers)
    return connection.getresponse()


def read_reply(status: int, data: bytes) -> Reply:
    """Return what an answer of the gateway says. Never raises."""
    try:
        body: Any = json.loads(data)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        # An answer that cannot be read is none; a refusal is one without a body too (a proxy's).
        return Reply(0 if status == 200 else status, error=data[:200].decode(errors="replace"))
    return Reply(status, body, "" if status == 200 else str(body.get("error", body.get("detail", ""))))
