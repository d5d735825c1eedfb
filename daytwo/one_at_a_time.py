"""A lock on a state folder: two installations on one folder would each believe the processes to be its own."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daytwo.domain.errors import Refused


def holder(state_dir: Path) -> int | None:
    """The process that holds the folder, or `None` where nobody does or it cannot be read."""
    try:
        with (state_dir / "up.lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read())
    except (OSError, ValueError):
        return None
    return None


@contextmanager
def only_one(state_dir: Path) -> Iterator[None]:
    """Hold `up.lock` in the folder until this process ends. Raises `Refused` naming the process that holds it."""
    with (state_dir / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise Refused(
                f"daytwo is already up on {state_dir} (process {lock.read().strip() or 'not known'}); "
                "stop that one, or name another folder in DAYTWO_STATE_DIR"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield
