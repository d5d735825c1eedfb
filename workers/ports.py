"""Which TCP port of the loopback address a part listens on."""

from __future__ import annotations

import socket

from daytwo.domain.errors import Refused


def choose_port(wanted: int, *, what: str, any_free: bool) -> int:
    """Return `wanted` if it is free, else a free port if `any_free`. Raises `Refused` naming the port and `what`."""
    if _is_free(wanted):
        return wanted
    if not any_free:
        raise Refused(f"port {wanted} for {what} is in use; stop what uses it, name another, or allow --any-port")
    return _free_port()


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
