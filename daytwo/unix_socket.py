"""Binds the Unix sockets of the service and the lab."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

BACKLOG: Final = 128


def listening(path: Path, mode: int) -> socket.socket:
    """Return a socket that listens at `path`, in the place of what is there. Raises `OSError`.

    The file appears with its mode and with somebody who listens: whoever finds it is answered.
    """
    new = path.with_name(f"{path.name}~")
    new.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(new))
        new.chmod(mode)
        bound.listen(BACKLOG)
        new.rename(path)
    except OSError:
        bound.close()
        raise
    return bound
