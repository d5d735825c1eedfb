"""The control plane that the demo runs: `daytwo up` in the background, its API, and the CLI as a person uses it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from daytwo.domain.errors import Failed, Stale
from daytwo.lab.demo.children import Background
from daytwo.one_at_a_time import only_one

START_SECONDS: Final = 120.0
LONGEST_WAIT_SECONDS: Final = 20.0
LONGEST_SOCKET_PATH: Final = 107
"""Bytes; the kernel's limit for the address of a Unix socket. A clone may lie deep."""

# A transport loads the system's certificates unless it is given a context; a Unix socket needs none.
NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Plane:
    """A control plane with its state in `state_dir`; `up` runs it."""

    def __init__(self, state_dir: Path, process: Background) -> None:
        self.state_dir = state_dir
        self._process = process
        self.where: dict[str, str] = {}

    def until_ready(self) -> None:
        """Wait until every part answers. Raises `Failed` with the log if it does not start."""
        about = self.state_dir / "up.json"
        until(about.exists, seconds=START_SECONDS, what="the control plane to start", check=self._process.check)
        self.where = json.loads(about.read_text())

    def get(self, path: str, **query: Any) -> Any:
        """Return the service's answer to a read. Raises `Failed` with what it said instead."""
        self._process.check()
        answer = self._client().get(f"/v1/{path}", params=query)
        if answer.is_error:
            raise Failed(f"GET /v1/{path}: {answer.status_code} {answer.text}")
        return answer.json()

    def cli(self, *words: str) -> str:
        """Run `daytwo` with these words and return what it prints.

        Raises `Stale` for its exit code 5, and `Failed` for any other, with its words.
        """
        done = subprocess.run(
            [program("daytwo"), *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            kind = Stale if done.returncode == Stale.exit_code else Failed
            raise kind(f"daytwo {shlex.join(words)}: exit code {done.returncode}: {done.stdout}{done.stderr}".strip())
        return done.stdout

    def environment(self) -> dict[str, str]:
        """What a shell needs to reach this installation."""
        return {
            **os.environ,
            "DAYTWO_STATE_DIR": str(self.state_dir),
            "DAYTWO_SERVICE_SOCKET": self.where["service_socket"],
            "TEMPORAL_ADDRESS": self.where["temporal_address"],
            "TEMPORAL_NAMESPACE": self.where["temporal_namespace"],
        }

    def workflow_url(self, workflow_id: str) -> str:
        """The page of a workflow in the Temporal UI."""
        namespace = self.where["temporal_namespace"]
        return f"{self.where['temporal_ui']}/namespaces/{namespace}/workflows/{quote(workflow_id, safe='')}"

    def _client(self) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=self.where["service_socket"], verify=NO_TLS)
        return httpx.Client(transport=transport, base_url="http://service", timeout=LONGEST_WAIT_SECONDS + 20)


@contextmanager
def up(state_dir: Path, *options: str) -> Iterator[Plane]:
    """Run `daytwo up` on an empty `state_dir`. Raises `Refused` if another one runs there."""
    _make_empty(state_dir)
    command = [sys.executable, "-m", "workers.up", "--any-port", *options]
    process = Background("daytwo up", command, log=state_dir / "log/up.log", env=_up_environment(state_dir))
    try:
        plane = Plane(state_dir, process)
        plane.until_ready()
        yield plane
    finally:
        process.stop()


def _make_empty(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with only_one(state_dir):
        shutil.rmtree(state_dir)
    state_dir.mkdir(mode=0o700)


def _up_environment(state_dir: Path) -> dict[str, str]:
    # What the shell says of another installation is not meant for the demo's.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("DAYTWO_", "TEMPORAL_"))}
    socket = state_dir / "service.sock"
    if len(os.fsencode(socket)) > LONGEST_SOCKET_PATH:
        socket = Path(tempfile.mkdtemp(prefix="daytwo-")) / "service.sock"
    return {**own, "DAYTWO_STATE_DIR": str(state_dir), "DAYTWO_SERVICE_SOCKET": str(socket)}


def until(
    true: Callable[[], Any], *, seconds: float, what: str, check: Callable[[], None] = lambda: None, every: float = 0.2
) -> Any:
    """Return the first true answer of `true`. Raises `Failed` when it took longer than `seconds`."""
    give_up = time.monotonic() + seconds
    while not (found := true()):
        check()
        if time.monotonic() > give_up:
            raise Failed(f"waited {seconds:g} s for {what}")
        time.sleep(every)
    return found


def program(name: str) -> str:
    """A program of the virtual environment that runs the demo."""
    return str(Path(sys.executable).with_name(name))
