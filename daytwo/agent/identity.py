"""Which machine and which boot this is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

DMI: Final = Path("/sys/class/dmi/id")
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """The node's clock: implements the seam `Clock`."""

    def now(self) -> float:
        """Wall clock, Unix seconds."""
        return time.time()

    def uptime(self) -> float:
        """Seconds since boot, as the kernel log counts them."""
        return time.monotonic()


def boot_id(path: Path = BOOT_ID) -> str:
    """Return the id that the kernel drew at boot. Raises `OSError`."""
    return path.read_text(encoding="ascii").strip()


def dmi(folder: Path = DMI) -> dict[str, str]:
    """Return the machine's identity as its firmware tells it, without what cannot be read (no root, no firmware).

    Left out, because an empty serial would equal that of every other machine without one.
    """
    files = {"system_uuid": "product_uuid", "serial": "product_serial", "product": "product_name"}
    return {name: value for name, file in files.items() if (value := _read(folder / file))}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
