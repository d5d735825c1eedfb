"""Which GPUs the node should have and which it has, by UUID. Used by the GPU checks, the pulse and to name entities.

What it should have is told (`--expect-gpus`) or learnt from the first complete reading. What was learnt never shrinks
by itself: a GPU that is gone after a boot would not be missed. It changes when as many as expected are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from daytwo.agent.load import Load
from daytwo.agent.seams import GpuReading, GpuReport
from daytwo.agent.spool import Spool
from daytwo.wire import node_entity, pci_entity

_GPU_AT: Final = re.compile(
    r"NVRM: GPU at (?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-7])?: (GPU-[0-9a-f-]{36})\s*\Z"
)


class Inventory:
    """The GPUs of one node, remembered in the spool."""

    def __init__(self, spool: Spool, expected: int | None) -> None:
        self._spool = spool
        self._told = expected
        self._seen: list[dict[str, Any]] | None = None
        self._driver: str | None = None
        self._logged: dict[str, str] = {}

    @property
    def expected(self) -> int | None:
        """How many GPUs the node should have; `None` if that was never told or learnt."""
        return self._told if self._told is not None else len(self._learnt()) or None

    def known(self) -> list[str]:
        """Return the UUIDs that were learnt."""
        return [gpu["uuid"] for gpu in self._learnt()]

    def missing(self, report: GpuReport) -> list[str]:
        """Return the UUIDs that were learnt and do not answer now."""
        there = {gpu.uuid for gpu in report.gpus if not gpu.lost}
        return [uuid for uuid in self.known() if uuid not in there]

    def learn(self, report: GpuReport) -> list[str]:
        """Take a reading without trouble as what is there; return the UUIDs that no longer belong to the node."""
        gpus = [_described(gpu) for gpu in report.gpus if gpu.uuid]
        self._seen, self._driver = gpus, report.driver
        present = [gpu for gpu in report.gpus if not gpu.lost and gpu.uuid]
        if len(present) != len(report.gpus) or len(present) < max(1, self.expected or 0):
            return []
        gone = self.missing(report)
        self._spool.remember("inventory", gpus)
        return gone

    def hear(self, text: str) -> None:
        """Take the UUID that the driver logs before the first Xid of a GPU."""
        if match := _GPU_AT.match(text):
            self._logged[short_address(match[1])] = match[2]

    def entity_at(self, pci: str | None) -> str:
        """Return the entity of a GPU that the kernel log names by its address: its UUID if that is known."""
        if pci is None:
            return node_entity()
        address = short_address(pci)
        known = {gpu["pci"]: gpu["uuid"] for gpu in (*self._learnt(), *(self._seen or ()))}
        return str(known.get(address) or self._logged.get(address) or pci_entity(address))

    def entity_of(self, gpu: GpuReading) -> str:
        """Return the entity of a GPU that NVML names, as well as it could."""
        return gpu.uuid or self.entity_at(gpu.pci)

    def to_wire(self, loads: Mapping[str, Load]) -> dict[str, Any] | None:
        """Return what the last reading without trouble saw, with what each is like under load; `None` before it."""
        if self._seen is None:
            return None
        gpus = [gpu | {"load": loads[gpu["uuid"]]} if gpu["uuid"] in loads else gpu for gpu in self._seen]
        return {"gpus": gpus, "driver": self._driver}

    def _learnt(self) -> Sequence[dict[str, Any]]:
        learnt: Sequence[dict[str, Any]] = self._spool.recall("inventory", [])
        return learnt


def short_address(pci: str) -> str:
    """Return `0000:1a:00` for any spelling: NVML writes eight digits of domain and upper case, the kernel log four."""
    domain, bus, device = pci.lower().split(".")[0].rsplit(":", 2)
    return f"{domain.lstrip('0').rjust(4, '0')}:{bus}:{device}"


def _described(gpu: GpuReading) -> dict[str, Any]:
    return {"index": gpu.index, "uuid": gpu.uuid, "serial": gpu.serial, "pci": gpu.pci, "name": gpu.name}
