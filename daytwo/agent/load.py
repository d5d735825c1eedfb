"""What each GPU is like under load, told so that a steady one is told once. Used by `core`, for the inventory.

A GPU is compared with those of its rack, which takes the same thing of each: ten minutes under load, and nothing of one
that idles. Temperatures come in steps, because each change is a pulse in full.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypedDict

from daytwo.agent.seams import HARDWARE_SLOWDOWN, GpuReading, GpuReport

WINDOW_SECONDS: Final = 600.0
"""Operations, rule 22: an outlier for ten minutes under load."""
LOADED_PERCENT: Final = 50
"""A reading with at least so much of the time busy is one under load (judgement)."""
LONGEST_GAP: Final = 180.0
"""Between two readings; longer ago nothing is known of what lies between (three polls)."""
STEP: Final = 5
"""°C. The mean must be further than this from what was told before it is told anew."""
HELD_FROM, HELD_UNTIL = 0.8, 0.2
"""The share of readings with clocks held down by the hardware at which a GPU begins to count as held down, and ends."""


class Load(TypedDict):
    """What goes into the inventory. `temperature` is a mean in °C, `power_limit` in W."""

    temperature: int
    held_down: bool | None
    power_limit: int | None


@dataclass(slots=True)
class _Run:
    """One GPU since it came under load."""

    began: float
    readings: deque[tuple[float, GpuReading]] = field(default_factory=deque)
    told: Load | None = None

    def add(self, gpu: GpuReading, uptime: float) -> None:
        self.readings.append((uptime, gpu))
        while uptime - self.readings[0][0] > WINDOW_SECONDS:
            self.readings.popleft()
        if uptime - self.began >= WINDOW_SECONDS:
            self.told = {
                "temperature": self._temperature(),
                "held_down": self._held_down(),
                "power_limit": gpu.power_limit,
            }

    def _temperature(self) -> int:
        known = [gpu.temperature for _, gpu in self.readings if gpu.temperature is not None]
        mean = sum(known) / len(known)
        if self.told and abs(mean - self.told["temperature"]) <= STEP:
            return self.told["temperature"]
        return round(mean)

    def _held_down(self) -> bool | None:
        held = [bool(gpu.reasons & HARDWARE_SLOWDOWN) for _, gpu in self.readings if gpu.reasons is not None]
        if not held:
            return None
        return sum(held) / len(held) >= (HELD_UNTIL if self.told and self.told["held_down"] else HELD_FROM)


class Loads:
    """The GPUs of one node that are under load, by UUID."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def take(self, report: GpuReport, uptime: float) -> None:
        """Take a reading. A GPU that it does not show under load begins anew."""
        loaded = {gpu.uuid: gpu for gpu in report.gpus if gpu.uuid and _is_loaded(gpu)}
        for uuid in [uuid for uuid, run in self._runs.items() if uuid not in loaded or _has_gap(run, uptime)]:
            del self._runs[uuid]
        for uuid, gpu in loaded.items():
            self._runs.setdefault(uuid, _Run(uptime)).add(gpu, uptime)

    def told(self, uptime: float) -> Mapping[str, Load]:
        """What is told of those that were under load for the whole time, until now."""
        return {uuid: run.told for uuid, run in self._runs.items() if run.told and not _has_gap(run, uptime)}


def _is_loaded(gpu: GpuReading) -> bool:
    return gpu.ok and gpu.temperature is not None and (gpu.utilisation or 0) >= LOADED_PERCENT


def _has_gap(run: _Run, uptime: float) -> bool:
    return uptime - run.readings[-1][0] > LONGEST_GAP
