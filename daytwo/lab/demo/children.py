"""The processes that the demo starts: each dies with it, and writes to a file of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from daytwo.domain.errors import Failed

STOP_SECONDS: Final = 60.0


class Background:
    """One process, started at once. `setpriv` lets the kernel end it when the demo ends, however that happens."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "--", *command],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is the demo's to handle: it stops the others in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def check(self) -> None:
        """Raise `Failed` with the end of its log if it has ended."""
        status = self._process.poll()
        if status is not None:
            tail = self.log.read_text(errors="replace").splitlines()[-20:]
            raise Failed("\n".join([f"{self.name} ended with status {status}; {self.log} ends:", *tail]))

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end, and wait; a second `stop` does nothing."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
