"""The service's Unix socket: the kernel says who is on the other end, so nobody can claim to be somebody else."""

from __future__ import annotations

import asyncio
import logging
import pwd
import socket
import struct
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from daytwo import __version__
from daytwo.domain.errors import Refused
from daytwo.domain.vocabulary import Channel
from daytwo.service.decisions import Identity
from daytwo.unix_socket import listening

log = logging.getLogger(__name__)

MODE = 0o660
"""Owner and group may connect: put people who decide into the socket's group."""

LOOK_SECONDS: Final = 1.0
"""How often the service looks whether its socket is still where people look for it."""

GRACE_SECONDS = 5
"""How long a stopping service lets requests finish; a client that waits for a decision just asks again."""

VERSION_HEADER = "daytwo-version"
"""In every answer: a client of another version says so to whoever runs it."""

PEER_UID = "peer_uid"
_CREDENTIALS = struct.Struct("3i")


class PeerProtocol(H11Protocol):
    """HTTP over a Unix socket; every request's state carries the peer's user id as the kernel vouches for it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the kernel once a connection: the peer of a connected socket never changes."""
        super().connection_made(cast(asyncio.Transport, transport))
        self.app_state = {**self.app_state, PEER_UID: peer_uid(transport.get_extra_info("socket"))}


def peer_uid(connection: Any) -> int:
    """The user id of the process that connected (SO_PEERCRED)."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(data)[1]
    return uid


def actor_of(uid: int) -> str:
    """`cli:<user name>`, or `cli:uid-<number>` for a user this machine has no name for."""
    try:
        return f"cli:{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"cli:uid-{uid}"


def asker(request: Request) -> Identity:
    """Who asks. Raises `Refused` for a request that did not come through the socket."""
    uid = getattr(request.state, PEER_UID, None)
    if not isinstance(uid, int):
        raise Refused("this request proves no identity: it did not come through the service's Unix socket")
    return Identity(actor=actor_of(uid), channel=Channel.CLI, verified=True)


def listen(path: Path) -> socket.socket:
    """Bind the socket, clearing away one that nobody answers on any more. Raises `Refused` when somebody does."""
    if path.exists():
        _clear_stale(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return listening(path, MODE)


def server(app: FastAPI) -> uvicorn.Server:
    """The HTTP server for `app`; run it with `serve(sockets=[listen(path)])`, and `stay_bound` beside it."""
    # proxy_headers is off because a header must never say who somebody is.
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        lifespan="on",
        proxy_headers=False,
        headers=[(VERSION_HEADER, __version__)],
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)


async def stay_bound(web: uvicorn.Server, path: Path) -> None:
    """Bind the socket again whenever its file was deleted or replaced; requests under way go on.

    Runs until it is cancelled. Raises `Refused` when another service listens there now.
    """
    mine = _file_at(path)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if not web.started or web.should_exit or _file_at(path) == mine:
            continue
        log.warning("the socket %s was deleted or replaced; it is bound again", path)
        try:
            await _move(web, listen(path))
        except OSError as error:
            log.warning("the socket %s cannot be bound: %s", path, error)
            continue
        mine = _file_at(path)


async def _move(web: uvicorn.Server, bound: socket.socket) -> None:
    """Let a server that runs take its connections from another socket."""

    def protocol() -> asyncio.Protocol:
        return PeerProtocol(web.config, web.server_state, web.lifespan.state)

    left, web.servers = web.servers, [await asyncio.get_running_loop().create_server(protocol, sock=bound)]
    for server in left:
        server.close()


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file is there, or `None`. A listening socket does not notice that its file went."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _clear_stale(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise Refused(f"another service is already listening on {path}")
