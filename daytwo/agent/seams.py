"""What the agent's core needs from a node, and what passes between them. Real ones: `kernel_log`, `gpus`, `link`.

The simulated fleet implements the same protocols in memory. No method here blocks: what takes time is started by one
call and collected by another, and whoever has something to collect calls the `wake` it was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from daytwo.faults.kernel_line import KernelRecord

Detail = dict[str, str | int | float | bool | None]
Position = tuple[int | str, ...]
"""A place in a kernel log, as its reader writes it."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One kernel record. `sequence` is the kernel's own, in a file the number of the line.

    `at` is when it was written (Unix seconds), `position` what `KernelLog.start` needs to go on after it.
    """

    record: KernelRecord
    sequence: int
    at: float
    position: Position


@dataclass(frozen=True, slots=True)
class LogStatus:
    """How well a kernel log is read. `lost` and `damaged` count since the agent started; `error` says why not.

    `source` is which log it is: `kmsg`, `journal`, `file:/path`.
    """

    readable: bool
    lost: int = 0
    damaged: int = 0
    error: str = ""
    source: str = ""


class KernelLog(Protocol):
    """The kernel's messages of one boot."""

    def start(self, position: Position | None, *, same_boot: bool) -> None:
        """Begin to read after the position of the last record that was taken; `None`: from the start of the log.

        `same_boot` tells whether that record was of this boot. Called again, it begins anew.
        """

    def collect(self) -> Sequence[LogRecord]:
        """Return what came since the last call, in order."""

    def status(self) -> LogStatus:
        """Say whether the log can be read, and what was lost of it."""


HARDWARE_SLOWDOWN: Final = 0x8 | 0x40 | 0x80
"""NVML's clock event reasons: hardware slowdown, hardware thermal, power brake. 0x4 and 0x20 are the software's own."""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU as NVML tells it. `None` is not known; a reading that the device does not have is named in `unsupported`.

    `pci` is lower case without the function. `reasons` are NVML's clock event reasons (bits). `lost`: off the bus.
    `temperature` is in °C, `utilisation` in percent of the time, `power_limit` in W as it is enforced.
    `counts` are errors of its memory, named in `daytwo.agent.gpu_child`: what the device does not count is not in
    there, what could not be read is `None`, and `counts_error` says why.
    """

    index: int
    uuid: str | None = None
    pci: str | None = None
    serial: str | None = None
    name: str | None = None
    ok: bool = True
    error: str | None = None
    lost: bool = False
    recovery_action: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    reasons: int | None = None
    temperature: int | None = None
    utilisation: int | None = None
    power_limit: int | None = None
    unsupported: tuple[str, ...] = ()
    counts: Mapping[str, int | None] = field(default_factory=dict)
    counts_error: str | None = None


GpuTrouble = Literal["", "no-library", "no-driver", "hung", "failed"]


@dataclass(frozen=True, slots=True)
class GpuReport:
    """One look at all GPUs. With `trouble` the list is incomplete and no count; `error` says what happened."""

    gpus: tuple[GpuReading, ...] = ()
    driver: str | None = None
    trouble: GpuTrouble = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LetGo:
    """Whether our own hold on the GPUs is gone, and who else holds them, as far as can be seen."""

    done: bool
    holders: tuple[str, ...] = ()
    error: str = ""


class Gpus(Protocol):
    """The GPUs of the node. One reading at a time."""

    def let_go(self) -> None:
        """Close everything of ours that keeps a GPU from a reset; the next `ask` opens it again."""

    def collect_let_go(self) -> LetGo | None:
        """Return what came of `let_go`, once, within some seconds."""

    def ask(self, deadline_seconds: float) -> None:
        """Start a reading. A report follows for certain: when the deadline passes it has `trouble` "hung"."""

    def collect(self) -> GpuReport | None:
        """Return the report of the reading that was asked for, once."""


@dataclass(frozen=True, slots=True)
class Call:
    """One POST to the gateway: `what` is the last word of the path, `body` as `daytwo.wire` has it."""

    what: Literal["findings", "pulse"]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call. `status` 0: no answer, or one that cannot be read; `error` says why."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    error: str = ""


class Collector(Protocol):
    """Collects what an act on the machine would lose (`daytwo.agent.evidence`)."""

    def ask(self, seconds: float, readings: dict[str, Any]) -> None:
        """Start. A result follows for certain."""

    def collect(self) -> dict[str, object] | None:
        """Return the result that was asked for, once."""


class Link(Protocol):
    """The way to the gateway. One call at a time."""

    def send(self, call: Call) -> None:
        """Start a call. A reply follows for certain, within the link's own timeout."""

    def collect(self) -> Reply | None:
        """Return the reply to the call that was sent, once."""


class Clock(Protocol):
    """The node's time."""

    def now(self) -> float:
        """Wall clock, Unix seconds. May jump."""

    def uptime(self) -> float:
        """Seconds since boot. Never jumps: all waiting is measured by it."""


class Journal(Protocol):
    """Where the spool keeps its lines."""

    def load(self) -> list[dict[str, Any]]:
        """Return all entries; one that is torn or damaged is left out."""

    def append(self, entries: Sequence[dict[str, Any]], *, durable: bool) -> None:
        """Add entries; if `durable`, they survive a crash of the machine once this returns."""

    def rewrite(self, entries: Sequence[dict[str, Any]]) -> None:
        """Put these in the place of all entries, atomically."""
