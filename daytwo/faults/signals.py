"""What a kernel record says about a fault: the one function the agent calls for each record it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from daytwo.faults.kernel_line import KernelRecord
from daytwo.faults.off_bus import OffBus
from daytwo.faults.recovery import NOTHING
from daytwo.faults.xid import XidLine, parse_xid

Detail = str | int

OFF_BUS: Final = "gpu-off-bus"
OFF_BUS_SIGNS: Final = ("xid-79", OFF_BUS)
"""Two names of one loss: the driver's code, and its other records of it."""
RECOVERY_ACTION: Final = "recovery-action"
XID_RECOVERY: Final = "xid-154"
SAME_READING: Final = (XID_RECOVERY, RECOVERY_ACTION)
"""Two names of one reading, as the kernel log and as NVML tell it: a zero in either ends both."""

MAX_EVIDENCE: Final = 500


@dataclass(frozen=True, slots=True)
class Signal:
    """One fault seen (or seen to end, if `clears`) on one GPU.

    `entity_pci` is lower case without the function, `None` if the record does not name a GPU. `evidence` is the text,
    cut to 500 characters. `detail` holds what the line tells: `xid`, `message`, `pid`, `process`, `gpu_instance`,
    `compute_instance`, `caused_by`, `recovery_from`, `recovery_action`.
    """

    fault: str
    entity_pci: str | None
    evidence: str
    detail: Mapping[str, Detail] = field(default_factory=dict)
    caused_by: int | None = None
    clears: bool = False

    @property
    def cleared(self) -> tuple[str, ...]:
        """The faults that this signal ends on its GPU; empty if it reports one."""
        return SAME_READING if self.clears else ()


def read(record: KernelRecord, off_bus: OffBus | None = None) -> Signal | None:
    """Return what the record says, or `None` for the rest of the log. Never raises.

    `off_bus` is the state of this log: without it a GPU that is lost in three records is found, but not which one.
    Who wrote the record is the caller's question (`KernelRecord.from_user_space`).
    """
    line = parse_xid(record.text)
    if line is not None:
        return _of_xid(line, record.text)
    lost = (off_bus or OffBus()).read(record.text)
    return Signal(OFF_BUS, lost.pci, _evidence(record.text)) if lost else None


def _of_xid(line: XidLine, text: str) -> Signal:
    return Signal(
        fault=f"xid-{line.xid}",
        entity_pci=line.pci,
        evidence=_evidence(text),
        detail=_detail(line),
        caused_by=line.caused_by,
        clears=line.recovery is not None and line.recovery[1] == NOTHING,
    )


def _detail(line: XidLine) -> dict[str, Detail]:
    before, after = line.recovery or (None, None)
    told: dict[str, Detail | None] = {
        "xid": line.xid,
        "message": line.message[:MAX_EVIDENCE] or None,
        "pid": line.pid,
        "process": line.process[:MAX_EVIDENCE] if line.process else None,
        "gpu_instance": line.gpu_instance,
        "compute_instance": line.compute_instance,
        "caused_by": line.caused_by,
        "recovery_from": before,
        "recovery_action": after,
    }
    return {name: value for name, value in told.items() if value is not None}


def _evidence(text: str) -> str:
    return " / ".join(text.split("\n"))[:MAX_EVIDENCE]
