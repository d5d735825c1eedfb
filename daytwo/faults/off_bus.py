"""A GPU that fell off the bus, in the shapes that are not an Xid 79. `daytwo.faults.signals` calls `OffBus.read`.

Shapes (NVIDIA/open-gpu-kernel-modules, gpud and NVSentinel test data): one line with the address, in an older and a
newer wording; and a block of three lines at probe, in one record or in three, whose last line alone is decisive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ADDRESS = r"(?:PCI:)?(?P<pci>(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-7])?"
_ONE_LINE = re.compile(rf"NVRM: GPU (?:at )?{_ADDRESS}:? (?:GPU )?has fallen off the bus")
_FIRST = re.compile(rf"NVRM:\s{{1,16}}The NVIDIA GPU {_ADDRESS}(?![0-9A-Fa-f:])")
_LAST = re.compile(r"NVRM:\s{1,16}(?:[^\n]{0,96} has )?fallen off the bus and is not responding to commands")

RECORDS_BETWEEN: Final = 16
"""How many records of other CPUs may stand between the first and the last line of a block."""


@dataclass(frozen=True, slots=True)
class LostGpu:
    """A GPU that no longer answers. `pci` is lower case, without the function; `None` if no line names it."""

    pci: str | None


class OffBus:
    """Recognises the shapes over a stream of records. One for each kernel log; it remembers an open block, no more."""

    def __init__(self) -> None:
        self._pci: str | None = None
        self._left = 0

    def read(self, text: str) -> LostGpu | None:
        """Return the GPU that `text` (a `KernelRecord.text`) declares lost, or `None`. Never raises."""
        match = _ONE_LINE.match(text)
        if match is not None:
            return LostGpu(_full(match["pci"]))
        if not text.startswith("NVRM:"):
            self._left -= 1
            return None
        return self._read_block(text)

    def _read_block(self, text: str) -> LostGpu | None:
        # At most three lines: a longer record is something else, however it goes on.
        for line in text.split("\n", 3)[:3]:
            if first := _FIRST.match(line.strip()):
                self._pci, self._left = _full(first["pci"]), RECORDS_BETWEEN
            if _LAST.match(line.strip()):
                return LostGpu(self._take())
        self._left -= 1
        return None

    def _take(self) -> str | None:
        pci = self._pci if self._left > 0 else None
        self._pci, self._left = None, 0
        return pci


def _full(address: str) -> str:
    """Older lines leave the PCI domain out; it is 0000."""
    return (address if address.count(":") == 2 else f"0000:{address}").lower()
