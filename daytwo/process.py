"""What a process of ours does before anything else: no file for others, no core dump, nobody who looks into its memory.

Every `main` of `workers` calls `harden`, and so does the agent. Standard library only. Children inherit the first two.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

UMASK: Final = 0o077
PR_SET_DUMPABLE: Final = 4
_FILTER: Final = Path("/proc/self/coredump_filter")


def harden(*, readable: bool = False) -> None:
    """Keep secrets in this process: new files are its user's alone, and a crash leaves no core dump.

    Others of the same user may not read its memory, its environment or its open files either, unless `readable`.
    """
    os.umask(UMASK)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The limit binds no program that cores are piped to; what is filtered out is not piped either.
    with suppress(OSError):
        _FILTER.write_text("0")
    if not readable:
        _hide()


def _hide() -> None:
    import ctypes  # only here: the agent, which is not hidden, is to stay small

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
