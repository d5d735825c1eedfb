"""What keeps one node from taking all connections: how many an address may have, and how long one may be idle or slow.

`workers.gateway` listens with it. A node runs other people's jobs, so each of its connections is bounded: in number, by
address, before TLS; in time, until TLS stands, and until the head of its next request is there (`daytwo.gateway.body`
bounds the body); and of a body that was answered before it ended, no more is read than a body may be long.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections import Counter
from typing import Any, Final, Self, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from daytwo.domain.errors import Refused
from daytwo.wire import MAX_BODY_BYTES

log = logging.getLogger(__name__)
# A request that is none would be a line each: whoever sends many of them would fill the disk.
log.setLevel(logging.ERROR)

HEAD_SECONDS: Final = 10.0
"""From a connection's beginning, or from its last answer, to the end of the next request's head."""
PER_ADDRESS: Final = 64
"""An agent has one connection. More than that share an address behind a proxy or a NAT: then the setting says so."""
NOT_COUNTED: Final = ("127.0.0.1", "::1")
"""This machine itself: a proxy before the gateway, which counts its own guests, or a simulated fleet."""
SPARE_FILES: Final = 128
"""Of the process's open files, for the store, logs and libraries."""
MOST_FILES: Final = 65_536
BACKLOG: Final = 512
AT_A_TIME: Final = 64


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that hangs up on whoever does not come to the point."""

    head_seconds: float = HEAD_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.logger = log
        self._impatience: asyncio.TimerHandle | None = None
        self._late: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first head."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what came; a complete head ends the wait, and a body that goes on after its answer is cut off."""
        if self._late is not None:
            self._late += len(data)
            if self._late > MAX_BODY_BYTES:
                self._hang_up()
                return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next head, or for the end of a body that was answered early: hanging up loses the answer."""
        self._late = 0 if self.conn.their_state is h11.SEND_BODY else None
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._calm()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.SEND_BODY:
            self._late = None
        if self.conn.their_state is not h11.IDLE and self._late is None:
            self._calm()
        elif self._impatience is None:
            self._impatience = self.loop.call_later(self.head_seconds, self._hang_up)

    def _calm(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None

    def _hang_up(self) -> None:
        self._calm()
        self.transport.abort()


class PatientLoop(asyncio.SelectorEventLoop):
    """A loop whose servers hang up on whoever begins TLS and does not end. Without it that may take a minute."""

    handshake_seconds: float = HEAD_SECONDS

    async def create_server(self, *given: Any, **named: Any) -> asyncio.Server:
        """As asyncio's own."""
        if named.get("ssl") is not None:
            named.setdefault("ssl_handshake_timeout", self.handshake_seconds)
        return await super().create_server(*given, **named)


PATIENT_LOOP: Final = f"{__name__}:{PatientLoop.__name__}"
"""As uvicorn is told which loop to run."""


class Door(socket.socket):
    """A listening socket that lets in `per_address` connections of one address at a time, and `most` altogether."""

    def __init__(self, *given: Any, per_address: int, most: int, **named: Any) -> None:
        super().__init__(*given, **named)
        self._per_address, self._most = per_address, most
        self._inside: Counter[str] = Counter()

    def accept(self) -> tuple[socket.socket, Any]:
        """As the socket's own; a guest too many is shown out. Raises `BlockingIOError` when nobody else is there."""
        for _ in range(AT_A_TIME):
            connection, address = super().accept()
            host = str(address[0])
            if self._has_room(host):
                return _Guest(self._inside, host, connection.detach()), address
            connection.close()
        raise BlockingIOError("too many come at once; the others are asked next time")

    def _has_room(self, host: str) -> bool:
        if self._inside.total() >= self._most:
            return False
        return host in NOT_COUNTED or self._inside[host] < self._per_address


class _Guest(socket.socket):
    """A connection that is counted while it is open."""

    def __init__(self, inside: Counter[str], host: str, file: int) -> None:
        super().__init__(fileno=file)
        self._counted: tuple[Counter[str], str] | None = (inside, host)
        inside[host] += 1

    def close(self) -> None:
        """Close it, and let another in."""
        if self._counted is not None:
            inside, host = self._counted
            self._counted = None
            inside[host] -= 1
            if inside[host] <= 0:
                del inside[host]
        super().close()


class Doors(list[socket.socket]):
    """The listening sockets of one gateway; closed at the end of the block, whatever happens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for door in self:
            door.close()


def open_doors(host: str, port: int, *, per_address: int = PER_ADDRESS) -> Doors:
    """Listen on each address of `host`. Raises `Refused` naming the address that is not ours or is in use."""
    most = _open_files() - SPARE_FILES
    doors = Doors()
    for family, kind, protocol, _, address in _addresses(host, port):
        door = Door(family, kind, protocol, per_address=per_address, most=most)
        doors.append(door)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            door.bind(address)
        except OSError as error:
            doors.__exit__()
            raise Refused(f"DAYTWO_GATEWAY_URL: cannot listen on {host} port {port}: {error.strerror}") from None
        door.listen(BACKLOG)
        door.setblocking(False)
    return doors


def _addresses(host: str, port: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise Refused(f"DAYTWO_GATEWAY_URL: {host} is no address of this machine: {error}") from None


def _open_files() -> int:
    """Allow this process as many open files as it may have; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, min(hard, MOST_FILES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
