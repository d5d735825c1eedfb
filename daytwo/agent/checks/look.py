"""One reading of the GPUs, as the checks see it. `core` makes one for each report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from daytwo.agent.checks.counters import Counters
from daytwo.agent.checks.levels import Levels
from daytwo.agent.inventory import Inventory
from daytwo.agent.seams import GpuReport
from daytwo.wire import CheckState


@dataclass(frozen=True, slots=True)
class Look:
    """One reading, with what it is judged against. `asked_at` is the uptime at which it began."""

    report: GpuReport
    inventory: Inventory
    levels: Levels
    counters: Counters
    asked_at: float

    def set(self, fault: str, entity: str, holds: bool, evidence: str, **detail: str | int | None) -> None:
        """Say of one condition whether it holds."""
        self.levels.set(fault, entity, holds, source="nvml", evidence=evidence, detail=dict(detail))

    def state(self, readings: Iterable[object], unsupported: str, *faults: str) -> CheckState:
        """Sum up: firing first, then unknown where a reading is missing, unsupported where no device has it."""
        if self.levels.any_firing(*faults):
            return "firing"
        if self.report.trouble:
            return "unknown"
        lacking = [unsupported in gpu.unsupported for gpu in self.report.gpus]
        if lacking and all(lacking):
            return "unsupported"
        missing = [value is None and not lacks for value, lacks in zip(readings, lacking, strict=True)]
        return "unknown" if any(missing) else "ok"
