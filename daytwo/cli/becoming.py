"""A command that is a process of daytwo: it becomes that process, so that signals and the exit code are its own."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def become(module: str, *arguments: str) -> NoReturn:
    """Run `python -m module` with these arguments in the place of this process."""
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])
