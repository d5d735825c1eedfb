"""From kernel records to changes of findings, and what `probe-kernel` answers. Used by `core`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from daytwo.agent.changes import Change
from daytwo.agent.checks.levels import Levels
from daytwo.agent.inventory import Inventory
from daytwo.agent.seams import Clock, LogRecord, LogStatus
from daytwo.agent.spool import Spool
from daytwo.faults import signals
from daytwo.faults.off_bus import OffBus
from daytwo.faults.signals import Signal

SOURCE: Final = "kernel-log"
XIDS_REMEMBERED: Final = 128


class KernelSignals:
    """Reads the records of one boot in order. `report` takes each change."""

    def __init__(
        self,
        *,
        boot_id: str,
        accept_user_records: bool,
        spool: Spool,
        clock: Clock,
        inventory: Inventory,
        levels: Levels,
        report: Callable[[Change], None],
    ) -> None:
        self._boot_id, self._accept_user_records = boot_id, accept_user_records
        self._spool, self._clock = spool, clock
        self._inventory, self._levels, self._report = inventory, levels, report
        self._off_bus = OffBus()
        self._last_sequence: int | None = None
        remembered = spool.recall("xids", {})
        self._xids: list[dict[str, Any]] = remembered.get("xids", []) if remembered.get("boot_id") == boot_id else []

    def begin_again(self) -> None:
        """The log of this boot is read from its start once more."""
        self._off_bus = OffBus()

    def read(self, line: LogRecord) -> None:
        """Report what one record says. What a process wrote into the kernel log says nothing."""
        self._last_sequence = line.sequence
        if line.record.from_user_space and not self._accept_user_records:
            return
        self._inventory.hear(line.record.text)
        signal = signals.read(line.record, self._off_bus)
        if signal is not None:
            self._note_xid(signal, line)
            self._report_signal(signal, line)

    def probe(self, status: LogStatus) -> dict[str, object]:
        """Return the result of `probe-kernel`: the Xids of this boot, the newest of each code and address."""
        now = self._clock.now()
        xids = [
            {
                **{name: xid[name] for name in ("xid", "pci", "kernel_sequence")},
                "age_seconds": max(0.0, now - xid["at"]),
            }
            for xid in self._xids
        ]
        return {
            "boot_id": self._boot_id,
            "uptime_seconds": self._clock.uptime(),
            "last_kernel_sequence": self._last_sequence,
            "readable": status.readable,
            "xids": xids,
        }

    def _note_xid(self, signal: Signal, line: LogRecord) -> None:
        xid, pci = signal.detail.get("xid"), signal.entity_pci
        if xid is None:
            return
        others = [each for each in self._xids if (each["xid"], each["pci"]) != (xid, pci)]
        noted = {"xid": xid, "pci": pci, "kernel_sequence": line.sequence, "at": line.at}
        self._xids = [*others, noted][-XIDS_REMEMBERED:]

    def remember(self) -> None:
        """Keep the Xids of this boot: after a restart of the agent their records are not read again."""
        self._spool.remember("xids", {"boot_id": self._boot_id, "xids": list(self._xids)})

    def _report_signal(self, signal: Signal, line: LogRecord) -> None:
        entity = self._inventory.entity_at(signal.entity_pci)
        for fault in signal.cleared:
            self._levels.mark_cleared(fault, entity)
            self._report(self._change(signal, line, fault, entity))
        if not signal.clears:
            if signal.fault == signals.XID_RECOVERY:
                self._levels.mark_firing(signal.fault, entity)
            self._report(self._change(signal, line, signal.fault, entity))

    def _change(self, signal: Signal, line: LogRecord, fault: str, entity: str) -> Change:
        return Change(
            fault=fault,
            entity=entity,
            status="cleared" if signal.clears else "firing",
            first_seen=line.at,
            last_seen=line.at,
            source=SOURCE,
            boot_id=self._boot_id,
            count=line.record.repeated,
            kernel_sequence=line.sequence,
            evidence=(signal.evidence,),
            detail=dict(signal.detail),
        )
