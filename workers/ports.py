"""Which TCP port of the loopback address a part listens on."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final, Self

from daytwo.domain.errors import Refused

MOST_TRIES: Final = 100


class Ports:
    """The ports that this process has chosen. Nobody else's `Ports` gives them out before the end of the block.

    The parts bind them later, each its own. Until then a socket that does not listen keeps the kernel from giving the
    port to anybody who takes any, and a name that only one process can have tells another `daytwo up` that it is taken.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for each in self._held:
            each.close()

    def choose(self, wanted: int, *, what: str, any_free: bool) -> int:
        """Return `wanted` if it is free, else another if `any_free`. Raises `Refused` naming the port and `what`."""
        if held := self._hold(wanted):
            return held
        if not any_free:
            raise Refused(
                f"port {wanted} for {what} is in use; stop what uses it, name another, or allow --any-port",
                why="Only one program can listen on a port. Nothing was started.",
                following="the same command with --any-port (daytwo up --help: the options that name a port)",
            )
        for _ in range(MOST_TRIES):
            if held := self._hold(0):
                return held
        raise Refused(f"no port for {what} is free")

    def _hold(self, wanted: int) -> int | None:
        bound = socket.socket()
        try:
            # The part that will listen says so too: then the two may have one port, as long as this one does not.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(wanted != 0))
            bound.bind(("127.0.0.1", wanted))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port: int = bound.getsockname()[1]
            name = _named(port)
        except OSError:
            bound.close()
            return None
        self._held += (bound, name)
        return port


def _named(port: int) -> socket.socket:
    """A name of the port's in the same network namespace. Raises `OSError` while another process has it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0daytwo/port/{port}")
    except OSError:
        name.close()
        raise
    return name


LISTENING: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""


def listens(pid: int, port: int) -> bool:
    """Whether it is this process that listens on `port`: somebody else may have taken it since it was chosen."""
    return bool(_listeners(port) & _sockets(pid))


def _listeners(port: int) -> set[str]:
    """The inodes of the sockets that listen on `port`, on any address."""
    rows = (line.split() for name in ("tcp", "tcp6") for line in _lines(Path("/proc/net", name))[1:])
    return {row[9] for row in rows if row[3] == LISTENING and int(row[1].rsplit(":", 1)[1], 16) == port}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else [""]


def _sockets(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            found.add(os.readlink(entry).removeprefix("socket:[").removesuffix("]"))
        except OSError:
            continue  # closed since it was listed
    return found
