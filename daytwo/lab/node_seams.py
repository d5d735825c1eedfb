"""A simulated node as the agent's core sees it (`daytwo.agent.seams`): kernel log, GPUs, clock, and a real link.

`daytwo.lab.agents` builds them, anew for each boot.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import httpx

from daytwo.agent.evidence import Part, pack
from daytwo.agent.seams import Call, GpuReading, GpuReport, LetGo, LogRecord, LogStatus, Position, Reply
from daytwo.faults.kernel_line import parse_line
from daytwo.lab.world import DRIVER, GPU_NAME, Gpu, KernelLine, Node

HARDWARE_THERMAL: Final = 0x40
"""NVML's clock event reason for a board that protects itself from heat."""

LINK_TIMEOUT_SECONDS: Final = 10.0


class SimulatedClock:
    """Real time, with the uptime of a node that booted when its scheduler says so."""

    def __init__(self, node: Node) -> None:
        self._booted = time.monotonic() - max(0.0, time.time() - node.boot_time.timestamp())

    def now(self) -> float:
        """Wall clock, Unix seconds."""
        return time.time()

    def uptime(self) -> float:
        """Seconds since boot."""
        return time.monotonic() - self._booted


class SimulatedKernelLog:
    """The kernel log of one boot of a node."""

    def __init__(self, node: Node) -> None:
        self._lines = node.kernel
        self._booted = node.boot_time.timestamp()
        self._taken = 0

    def start(self, position: Position | None, *, same_boot: bool) -> None:
        """Go on after the last record that was taken in this boot; else from the first."""
        self._taken = int(position[0]) if position and same_boot else 0

    def collect(self) -> Sequence[LogRecord]:
        """Return what the kernel printed since the last call."""
        new, self._taken = self._lines[self._taken :], len(self._lines)
        return [record for line in new if (record := self._read(line))]

    def status(self) -> LogStatus:
        """A simulated log can always be read."""
        return LogStatus(readable=True, source="simulated")

    def _read(self, line: KernelLine) -> LogRecord | None:
        record = parse_line(line.kmsg)
        at = self._booted + line.monotonic_us / 1_000_000
        return None if record is None else LogRecord(record, line.sequence, at, (line.sequence,))


class SimulatedGpus:
    """The board of a node, read at once."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._asked = self._letting_go = False

    def ask(self, deadline_seconds: float) -> None:
        """Start a reading."""
        self._asked = True

    def collect(self) -> GpuReport | None:
        """Return the reading that was asked for."""
        if not self._asked:
            return None
        self._asked = False
        return GpuReport(tuple(_reading(gpu) for gpu in self._node.gpus if not gpu.absent), driver=DRIVER)

    def let_go(self) -> None:
        """Nothing holds a simulated GPU."""
        self._asked, self._letting_go = False, True

    def collect_let_go(self) -> LetGo | None:
        """Say so, once."""
        gone, self._letting_go = self._letting_go, False
        return LetGo(done=True) if gone else None


class SimulatedCollector:
    """The evidence of a node that has no programs: what its kernel printed, and what the agent knows."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._readings: dict[str, Any] | None = None

    def ask(self, seconds: float, readings: dict[str, Any]) -> None:
        """Collect at once."""
        self._readings = readings

    def collect(self) -> dict[str, object] | None:
        """Return it, once."""
        readings, self._readings = self._readings, None
        if readings is None:
            return None
        lines = b"\n".join(line.kmsg for line in self._node.kernel)
        said = json.dumps(readings, indent=1, default=str)
        return pack([Part("readings.json", said.encode()), Part("kernel.log", lines)])


class HttpLink:
    """One node's way to the real gateway. `wake` is called when a reply is there."""

    def __init__(self, client: httpx.AsyncClient, node: str, *, token: str, wake: Callable[[], None]) -> None:
        self._client = client
        self._path = f"/v1/nodes/{node}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._wake = wake
        self._task: asyncio.Task[Reply] | None = None

    def send(self, call: Call) -> None:
        """Start a call."""
        self._task = asyncio.create_task(self._post(call))
        self._task.add_done_callback(lambda _: self._wake())

    def collect(self) -> Reply | None:
        """Return the reply, once it is there."""
        if self._task is None or not self._task.done():
            return None
        task, self._task = self._task, None
        return task.result()

    async def cut(self) -> None:
        """Drop the call that is under way, as a node does that loses its power."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _post(self, call: Call) -> Reply:
        try:
            answer = await self._client.post(f"{self._path}/{call.what}", json=call.body, headers=self._headers)
            return _as_reply(answer)
        except httpx.HTTPError as error:
            return Reply(0, error=f"{type(error).__name__} {error}".strip())


def _as_reply(answer: httpx.Response) -> Reply:
    try:
        body: Any = answer.json()
    except ValueError:
        return Reply(0, error=f"{answer.status_code}, but not JSON")
    if not isinstance(body, dict):
        return Reply(0, error=f"{answer.status_code}, but not an object")
    return Reply(answer.status_code, body, str(body.get("error", "")))


def _reading(gpu: Gpu) -> GpuReading:
    if gpu.lost:
        return GpuReading(gpu.index, ok=False, lost=True, error="GPU is lost")
    return GpuReading(
        gpu.index,
        uuid=gpu.uuid,
        pci=gpu.pci,
        serial=gpu.serial,
        name=GPU_NAME,
        recovery_action=gpu.recovery_action,
        remap_pending=gpu.remap_pending,
        remap_failed=gpu.remap_failed,
        reasons=HARDWARE_THERMAL if gpu.hw_slowdown else 0,
        counts={"volatile_uncorrected": 0, "remapped_uncorrected": int(gpu.remap_pending or gpu.remap_failed)},
    )
