"""Who else holds the GPUs open, so that a reset or another driver cannot have them. Asked when the agent has let go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DEVICES: Final = "/dev/nvidia"
MOST: Final = 32


def holders(devices: str = DEVICES, proc: Path = Path("/proc")) -> tuple[str, ...]:
    """Return `name (pid)` of each process with such a device open, as far as this process may look."""
    mine = os.getpid()
    numbers = [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()]
    found = (number for number in sorted(numbers) if number != mine and _holds(proc / str(number) / "fd", devices))
    return tuple(f"{_name(proc / str(number))} ({number})" for number in found)[:MOST]


def _holds(folder: Path, devices: str) -> bool:
    try:
        return any(os.readlink(folder / name).startswith(devices) for name in os.listdir(folder))
    except OSError:
        return False  # it has ended, or is not ours to look into


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"
