"""Real processes and a real HTTP server for the tests of the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

KMSG = Path("/dev/kmsg")
TOKEN = "node-token"
Value = TypeVar("Value")


def until(look: Callable[[], Value | None], seconds: float = 10.0) -> Value:
    """Return the first true value of `look`; fail after this long."""
    ends_at = time.monotonic() + seconds
    while not (value := look()):
        assert time.monotonic() < ends_at, f"nothing came within {seconds} s"
        time.sleep(0.005)
    return value


def write_kmsg(text: str, *, priority: int = 4) -> None:
    """Write one record as a process may: one opening a record, because the kernel limits each opening.

    Without a newline the record stays hidden from readers until the next one: the kernel waits for its continuation.
    """
    with KMSG.open("wb", buffering=0) as device:
        device.write(f"<{priority}>{text}\n".encode())


def kmsg_writable() -> bool:
    return os.access(KMSG, os.R_OK | os.W_OK)


@dataclass
class HttpGateway:
    """Speaks the gateway's side of `daytwo.wire` from a script: `refusals` are answered first, then all is well."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    refusals: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    stream: int = 1

    def __enter__(self) -> HttpGateway:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, what: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.calls.append((what, body))
        if self.refusals:
            return self.refusals.pop(0)
        if what == "findings":
            last = body["records"][-1]["sequence"]
            return 200, {"stream": self.stream, "acknowledged": last, "come_back_seconds": 60}
        requests, self.requests = self.requests, []
        return 200, {"requests": requests, "withdrawn": [], "come_back_seconds": 0.2, "send_full": False}

    def records(self, fault: str = "") -> list[dict[str, Any]]:
        """All records that came, or those of one fault."""
        sent = [record for what, body in list(self.calls) if what == "findings" for record in body["records"]]
        return [record for record in sent if fault in ("", record["fault"])]

    def pulses(self) -> list[dict[str, Any]]:
        return [body for what, body in list(self.calls) if what == "pulse"]

    def answers(self, state: str) -> list[dict[str, Any]]:
        return [answer for pulse in self.pulses() for answer in pulse["answers"] if answer["state"] == state]


def _handler(gateway: HttpGateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 5

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            gateway.tokens.append(self.headers["Authorization"])
            status, answer = gateway.answer(self.path.rsplit("/", 1)[1], body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class AgentProcess:
    """`python -m daytwo.agent.main` with its state in a folder; it can be killed and started again."""

    def __init__(self, folder: Path, gateway: str, environment: dict[str, str]) -> None:
        (folder / "token").write_text(TOKEN)
        self.log = folder / "kernel.log"
        self.said = folder / "stderr"
        self._environment = os.environ | environment
        self._options = {
            "node": "n1",
            "gateway": gateway,
            "token-file": str(folder / "token"),
            "state-dir": str(folder / "state"),
            "kernel-log": f"file:{self.log}",
            "gpu-poll-seconds": "0.2",
            "gpu-deadline-seconds": "0.5",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *flags: str, environment: dict[str, str] | None = None, **options: str) -> subprocess.Popen[bytes]:
        given = self._options | {name.replace("_", "-"): value for name, value in options.items()}
        arguments = [part for name, value in given.items() for part in (f"--{name}", value)]
        with self.said.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "daytwo.agent.main", *arguments, *flags],
                env=self._environment | (environment or {}),
                stderr=stderr,
            )
        return self.process

    def write(self, *lines: str) -> None:
        """Append lines to the kernel log in a file."""
        with self.log.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
