"""Which TCP port of the loopback address a part listens on."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final

from daytwo.domain.errors import Refused


def choose_port(wanted: int, *, what: str, any_free: bool) -> int:
    """Return `wanted` if it is free, else a free port if `any_free`. Raises `Refused` naming the port and `what`."""
    if _is_free(wanted):
        return wanted
    if not any_free:
        raise Refused(f"port {wanted} for {what} is in use; stop what uses it, name another, or allow --any-port")
    return _free_port()


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


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
