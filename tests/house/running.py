"""What runs on this machine because of a test."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def wait_for(true: Callable[[], object], seconds: float = 90.0) -> None:
    """Wait until it is true; fail after so many seconds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def processes_of(folder: Path, word: str = "") -> list[int]:
    """The processes that know the folder from their environment or command line, and have `word` in the latter."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in environ + command and os.fsencode(word) in command:
            found.append(int(process.name))
    return found
