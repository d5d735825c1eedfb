"""Plays the machines of the one-machine Slurm that `daytwo.lab.slurm_lab` starts: what a reboot does to a node."""

from __future__ import annotations

import os
import select
import threading
import time
from pathlib import Path
from typing import Protocol

from daytwo.lab.slurm_config import LabSettings


class Machines(Protocol):
    """Nodes that have power and lose it: the lab."""

    root: Path
    auto_return: bool
    settings: LabSettings

    def power_on(self, node: str) -> None:
        """Start a node."""

    def cut_power(self, node: str) -> None:
        """End a node and all that runs on it, at once."""


class Firmware(threading.Thread):
    """Plays the machines: RebootProgram writes a node's name into a pipe; it loses power and returns a moment later."""

    def __init__(self, lab: Machines) -> None:
        super().__init__(name="firmware", daemon=True)
        self._lab = lab
        self._due: dict[str, float] = {}
        pipe = lab.root / "run/firmware"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        # Open for both ways: the pipe then has no end of file between two writers.
        self._pipe = os.open(pipe, os.O_RDWR)

    def run(self) -> None:
        """Serve until `stop`."""
        while True:
            for node in os.read(self._pipe, 4096).decode().split() if self._readable() else ():
                if node == "stop":
                    return
                self._reboot(node)
            for node in [node for node, at in self._due.items() if at <= time.monotonic()]:
                del self._due[node]
                self._lab.power_on(node)

    def _readable(self) -> bool:
        wait = max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None
        return bool(select.select([self._pipe], [], [], wait)[0])

    def _reboot(self, node: str) -> None:
        self._lab.cut_power(node)
        if self._lab.auto_return:
            self._due[node] = time.monotonic() + self._lab.settings.boot_seconds

    def stop(self) -> None:
        """End the thread."""
        os.write(self._pipe, b"stop\n")
        if self.is_alive():
            self.join()
        os.close(self._pipe)
