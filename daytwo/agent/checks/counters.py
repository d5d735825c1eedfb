"""What the GPUs counted at the reading before this one, by UUID, over restarts and boots. Used by the memory checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from daytwo.agent.seams import Clock, GpuReading, GpuReport
from daytwo.agent.spool import Spool

REMEMBERED: Final = 64
"""GPUs; those that left the node are among them for a while."""


class Counters:
    """The counts of the last reading, kept in the spool: an error that came while the agent was away is not lost."""

    def __init__(self, *, boot_id: str, spool: Spool, clock: Clock) -> None:
        self._boot_id, self._spool, self._clock = boot_id, spool, clock
        self._before: dict[str, dict[str, Any]] = dict(spool.recall("counters", {}))

    def grown(self, gpu: GpuReading, name: str) -> int:
        """Return by how much a count has grown; 0 at the first reading.

        A count that fell began anew (the driver was loaded again, the GPU was reset): all of it is new then.
        """
        now, before = gpu.counts.get(name), self._counts(gpu).get(name)
        if now is None or before is None:
            return 0
        return now - before if now >= before else now

    def per_minute(self, gpu: GpuReading, name: str) -> float | None:
        """Return the rate since the last reading of this boot; `None` without one, or where it is not counted."""
        last = self._before.get(gpu.uuid or "", {})
        seconds = self._clock.uptime() - float(last.get("uptime", 0.0))
        if last.get("boot_id") != self._boot_id or seconds <= 0 or gpu.counts.get(name) is None:
            return None
        return self.grown(gpu, name) * 60.0 / seconds

    def keep(self, report: GpuReport) -> None:
        """Take this reading as the one before the next. What could not be read keeps its last value."""
        place = {"boot_id": self._boot_id, "uptime": self._clock.uptime()}
        counted = {
            gpu.uuid: {**self._counts(gpu), **_read(gpu.counts)} for gpu in report.gpus if gpu.uuid and gpu.counts
        }
        changed = any(counts != self._before.get(uuid, {}).get("counts") for uuid, counts in counted.items())
        merged = self._before | {uuid: {**place, "counts": counts} for uuid, counts in counted.items()}
        self._before = dict(list(merged.items())[-REMEMBERED:])
        if changed:
            self._spool.remember("counters", dict(self._before))

    def _counts(self, gpu: GpuReading) -> Mapping[str, int]:
        counts: Mapping[str, int] = self._before.get(gpu.uuid or "", {}).get("counts", {})
        return counts


def _read(counts: Mapping[str, int | None]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}
