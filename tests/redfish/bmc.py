"""A small Redfish over TLS that can be told to misbehave. It knows what the sushy emulator lacks: sessions, tasks,
LastResetTime, BootProgress, hangs, 503, 202, wrong ETags, refusals of good tokens.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = "/redfish/v1/"
SYSTEM = f"{ROOT}Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
CHASSIS = f"{ROOT}Chassis/1"
TASKS = f"{ROOT}TaskService/Tasks"
SESSIONS = f"{ROOT}SessionService/Sessions"
UUID = "4c4c4544-0042-3510-8052-b4c04f564433"
SERIAL = "J5RVD3"
PASSWORD = "planted-Hunter2-secret"


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


@dataclass
class Answer:
    """What is answered instead of the truth. `seconds` is how long it takes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass
class Bmc:
    """The state of the BMC, to be changed by tests. `odd` holds answers by `METHOD path`, used up one by one."""

    password: str = PASSWORD
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    odd: dict[str, list[Answer]] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    resets: list[dict[str, Any]] = field(default_factory=list)
    works: bool = True
    address: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.documents |= {
            ROOT: {
                "Id": "RootService",
                "RedfishVersion": "1.15.0",
                "Systems": link(f"{ROOT}Systems"),
                "Chassis": link(f"{ROOT}Chassis"),
                "Tasks": link(f"{ROOT}TaskService"),
                "SessionService": link(f"{ROOT}SessionService"),
                "Links": {"Sessions": link(SESSIONS)},
            },
            f"{ROOT}Systems": {"Name": "Systems", "Members": [link(SYSTEM)]},
            SYSTEM: {
                "Id": "1",
                "Name": "System",
                "UUID": UUID,
                "SerialNumber": SERIAL,
                "PowerState": "On",
                "LastResetTime": "2026-11-30T02:00:00+00:00",
                "LocationIndicatorActive": False,
                "BootProgress": {"LastState": "OSRunning", "LastStateTime": "2026-11-30T02:04:00+00:00"},
                "Links": {"Chassis": [link(CHASSIS)]},
                "Actions": {
                    "#ComputerSystem.Reset": {
                        "target": RESET,
                        "ResetType@Redfish.AllowableValues": ["On", "ForceRestart", "GracefulRestart", "PowerCycle"],
                    }
                },
            },
            CHASSIS: {"Id": "1", "Name": "Chassis", "Links": {"ComputerSystems": [link(SYSTEM)]}},
            f"{ROOT}TaskService": {"Id": "TaskService", "Name": "Tasks", "Tasks": link(TASKS)},
            TASKS: {"Name": "Tasks", "Members": []},
        }

    @property
    def system(self) -> dict[str, Any]:
        return self.documents[SYSTEM]

    def allow(self, *words: str) -> None:
        self.system["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = list(words)

    def without_sessions(self) -> None:
        for name in ("SessionService", "Links"):
            del self.documents[ROOT][name]

    def run_task(self, state: str = "Running") -> None:
        path = f"{TASKS}/7"
        self.documents[TASKS]["Members"] = [link(path)]
        self.documents[path] = {"Id": "7", "Name": "Firmware update", "TaskState": state}

    def answer_oddly(self, what: str, *answers: Answer) -> None:
        self.odd.setdefault(what, []).extend(answers)

    def boot(self, state: str = "OSRunning", *, power: str = "On") -> None:
        """The machine was reset just now and is in `state` of its boot."""
        now = datetime.now(UTC)
        self.system["LastResetTime"] = (now - timedelta(seconds=1)).isoformat()
        self.system["BootProgress"] = {"LastState": state, "LastStateTime": now.isoformat()}
        self.system["PowerState"] = power


class _Handler(BaseHTTPRequestHandler):
    bmc: Bmc
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = json.loads(body) if body else {}
        what = f"{self.command} {self.path}"
        self.bmc.log.append(what)
        odd = self.bmc.odd.get(what)
        self._say(odd.pop(0) if odd else self._truth(said))

    def _truth(self, said: dict[str, Any]) -> Answer:
        if self.command == "POST" and self.path == SESSIONS:
            return self._log_in(said)
        if self.path != ROOT and not self._is_known():
            return Answer(401)
        if self.command == "DELETE":
            self.bmc.sessions.pop(self.headers["X-Auth-Token"], None)
            return Answer(204)
        if self.command == "POST":
            return self._reset(said)
        found = self.bmc.documents.get(self.path)
        return Answer(404) if found is None else Answer(200, found, {"ETag": f'W/"{time.monotonic_ns()}"'})

    def _log_in(self, said: dict[str, Any]) -> Answer:
        if said.get("Password") != self.bmc.password:
            return Answer(401, {"error": {"message": f"not {said.get('Password')}"}})
        number = len(self.bmc.log)
        self.bmc.sessions[f"token-{number}"] = f"{SESSIONS}/{number}"
        return Answer(201, {}, {"X-Auth-Token": f"token-{number}", "Location": f"{SESSIONS}/{number}"})

    def _is_known(self) -> bool:
        basic = _basic("daytwo", self.bmc.password)
        return self.headers.get("X-Auth-Token") in self.bmc.sessions or self.headers.get("Authorization") == basic

    def _reset(self, said: dict[str, Any]) -> Answer:
        if "If-Match" in self.headers:
            return Answer(412)
        self.bmc.resets.append({"path": self.path, **said})
        if self.bmc.works:
            self.bmc.boot()
        return Answer(204)

    def _say(self, answer: Answer) -> None:
        self.bmc.released.wait(answer.seconds)
        body = b"" if answer.body is None else answer.body if isinstance(answer.body, bytes) else _json(answer.body)
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to tell."""


@contextmanager
def serving(bmc: Bmc, certificate: Path) -> Iterator[Bmc]:
    """Serve it on a free port, with the certificate and key in one file."""
    handler = type("Handler", (_Handler,), {"bmc": bmc})
    server = _Server(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    bmc.address = f"https://127.0.0.1:{server.server_address[1]}"
    try:
        yield bmc
    finally:
        bmc.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
