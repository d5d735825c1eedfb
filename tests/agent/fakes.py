"""The agent's seams in memory: a clock to set, a log to fill, a board to edit, a gateway to script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from daytwo.agent.core import Agent, AgentSettings, Seams
from daytwo.agent.journal import MemoryJournal
from daytwo.agent.seams import Call, GpuReading, GpuReport, LetGo, LogRecord, LogStatus, Position, Reply
from daytwo.agent.spool import Spool
from daytwo.faults.kernel_line import KernelRecord

XID_79 = "NVRM: Xid (PCI:0000:1a:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
UUIDS = tuple(f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(8))
EPOCH = 1_764_500_000.0
COUNTED = (
    *("volatile_corrected", "volatile_uncorrected", "aggregate_corrected", "aggregate_uncorrected", "sram_threshold"),
    *("remapped_corrected", "remapped_uncorrected", "banks_none"),
)
"""What a board of today counts, as far as the checks look at it."""


@dataclass
class SetClock:
    seconds: float = 100.0

    def now(self) -> float:
        return EPOCH + self.seconds

    def uptime(self) -> float:
        return self.seconds


@dataclass
class FilledLog:
    records: list[LogRecord] = field(default_factory=list)
    current: LogStatus = field(default_factory=lambda: LogStatus(readable=True))
    started_after: Position | None = None
    sequence: int = 0

    def start(self, position: Position | None, *, same_boot: bool) -> None:
        self.started_after = position if same_boot else None

    def collect(self) -> Sequence[LogRecord]:
        records, self.records = self.records, []
        return records

    def status(self) -> LogStatus:
        return self.current

    def write(self, text: str, *, facility: int = 0, repeated: int = 1, at: float = EPOCH) -> None:
        self.sequence += 1
        record = KernelRecord(text, facility=facility, repeated=repeated)
        self.records.append(LogRecord(record, self.sequence, at, (self.sequence,)))


def board(count: int = 2) -> list[GpuReading]:
    return [
        GpuReading(
            index=index,
            uuid=UUIDS[index],
            pci=f"0000:{0x1A + index:02x}:00",
            serial=f"16{index:010d}",
            name="H100",
            recovery_action=0,
            remap_pending=False,
            remap_failed=False,
            reasons=0,
            counts=dict.fromkeys(COUNTED, 0),
        )
        for index in range(count)
    ]


@dataclass
class EditedGpus:
    gpus: list[GpuReading] = field(default_factory=board)
    trouble: Any = ""
    asked: int = 0
    answers: bool = True
    waiting: bool = False
    letting_go: bool = False
    let_go_calls: int = 0

    def ask(self, deadline_seconds: float) -> None:
        self.asked += 1
        self.waiting = True

    def collect(self) -> GpuReport | None:
        if not (self.waiting and self.answers):
            return None
        self.waiting = False
        if self.trouble:
            return GpuReport(trouble=self.trouble, error=f"NVML is {self.trouble}")
        return GpuReport(tuple(self.gpus), driver="580.95.05")

    def let_go(self) -> None:
        self.let_go_calls += 1
        self.waiting, self.letting_go = False, True

    def collect_let_go(self) -> LetGo | None:
        gone, self.letting_go = self.letting_go, False
        return LetGo(done=True, holders=("dcgm (7)",)) if gone else None

    def edit(self, index: int, **changed: Any) -> None:
        self.gpus[index] = replace(self.gpus[index], **changed)


@dataclass
class PlainCollector:
    """Collects the readings it is given, at once."""

    asked: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    waiting: bool = False

    def ask(self, seconds: float, readings: dict[str, Any]) -> None:
        self.asked.append((seconds, readings))
        self.waiting = True

    def collect(self) -> dict[str, object] | None:
        waiting, self.waiting = self.waiting, False
        return {"archive": "QQ==", "sha256": "", "size": 1, "parts": []} if waiting else None


@dataclass
class ScriptedGateway:
    """Answers 200 unless `replies` holds something; keeps all calls. `refuses` maps a fault to a status."""

    calls: list[Call] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    come_back_seconds: float = 60.0
    up: bool = True
    stream: int = 1
    refuses: dict[str, int] = field(default_factory=dict)
    taken: list[dict[str, Any]] = field(default_factory=list)
    pending: Call | None = None

    def send(self, call: Call) -> None:
        self.calls.append(call)
        self.pending = call

    def collect(self) -> Reply | None:
        call, self.pending = self.pending, None
        if call is None:
            return None
        if self.replies:
            return self.replies.pop(0)
        return self._answer(call) if self.up else Reply(0, error="connection refused")

    def _answer(self, call: Call) -> Reply:
        body: dict[str, Any] = {"come_back_seconds": self.come_back_seconds}
        if call.what == "findings":
            for index, record in enumerate(call.body["records"]):
                if status := self.refuses.get(record["fault"]):
                    return Reply(status, {}, f"records[{index}].fault: found {record['fault']}")
            self.taken += call.body["records"]
            body |= {"stream": self.stream, "acknowledged": call.body["records"][-1]["sequence"]}
        else:
            body |= {"requests": self.requests, "withdrawn": [], "send_full": False}
        return Reply(200, body)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for call in self.calls if call.what == "findings" for record in call.body["records"]]

    @property
    def pulses(self) -> list[dict[str, Any]]:
        return [call.body for call in self.calls if call.what == "pulse"]


class Node:
    """A simulated node that runs the real agent. `restart` is a new agent process, `boot` a new boot."""

    def __init__(self, **settings: Any) -> None:
        self.settings = AgentSettings(**{"node": "n1", "boot_id": "boot-1"} | settings)
        self.clock, self.log, self.gpus, self.gateway = SetClock(), FilledLog(), EditedGpus(), ScriptedGateway()
        self.collector = PlainCollector()
        self.journal = MemoryJournal()
        self.said: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.gateway.pending, self.gpus.waiting = None, False
        seams = Seams(self.log, self.gpus, self.gateway, self.collector, self.clock, self.said.append)
        self.agent = Agent(self.settings, seams, Spool(self.journal))

    def boot(self, boot_id: str = "boot-2") -> None:
        self.settings = replace(self.settings, boot_id=boot_id)
        self.log.records, self.log.sequence = [], 0
        self.restart()

    def run(self, seconds: float = 0.0) -> None:
        """Let the agent run for this long, each wait passing at once."""
        end = self.clock.seconds + seconds
        while self.clock.seconds + (delay := self._settle()) <= end:
            self.clock.seconds += max(delay, 0.001)
        self.clock.seconds = end
        self._settle()

    def _settle(self) -> float:
        """Step as long as a seam has something to collect, as its `wake` would."""
        delay = self.agent.step()
        while self.gateway.pending or self._has_more():
            delay = self.agent.step()
        return delay

    def _has_more(self) -> bool:
        return (self.gpus.waiting and self.gpus.answers) or self.gpus.letting_go or self.collector.waiting

    def findings(self, fault: str) -> list[tuple[str, str]]:
        return [(record["status"], record["entity"]) for record in self.gateway.records if record["fault"] == fault]
