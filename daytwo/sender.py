"""The child that sends or dies: it arms an alarm at the deadline, waits for the last word, and only then writes.

A paused or slow parent can therefore never send late: the alarm survives `exec`, and a pending alarm kills the child
before its next instruction. Standard library only and started without `site`, so that it is up in some 20 ms.

Input: one JSON line `{"deadline": <CLOCK_MONOTONIC seconds>, "send": {…}}`; it answers `armed`; then a line `go`.
End of input instead of `go`: it exits with 75 and has sent nothing. Killed by SIGALRM: perhaps sent; look.
Secrets come in by that line alone, which no other process can read, and are taken out of what is answered.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sys
import time
from urllib.parse import urlsplit

TYPE_CHECKING = False
"""As `typing` has it, which takes longer to import than all the rest."""
if TYPE_CHECKING:
    from typing import Any

NOT_SENT = 75
LONGEST_ANSWER = 65_536
LONGEST_COMPLAINT = 4_096


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def main() -> int:
    """Run one send. Returns the exit status; a command replaces this process instead."""
    order = json.loads(sys.stdin.readline())
    arm(order["deadline"])
    print("armed", flush=True)
    if sys.stdin.readline() != "go\n":
        return NOT_SENT
    send = order["send"]
    if send["type"] == "command":
        os.execvpe(send["argv"][0], send["argv"], {**os.environ, **send["env"]})
    if send["type"] == "program":
        return program(send, order["deadline"])
    return https(send) if send["type"] == "https" else request(send)


def arm(deadline: float) -> None:
    """Let SIGALRM end this process at `deadline` (CLOCK_MONOTONIC seconds)."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-6))


def request(send: dict[str, Any]) -> int:
    """Send one HTTP request over a Unix socket and print the answer. Returns 0 for a 2xx status."""
    connection = _UnixConnection(send["socket"])
    connection.request(send["method"], send["path"], json.dumps(send["body"]), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    print(answer.read().decode(errors="replace"))
    return 0 if 200 <= answer.status < 300 else 1


def https(send: dict[str, Any]) -> int:
    """Send one HTTPS request and print the status and the answer, without our secrets. Returns 0 for a 2xx status."""
    import ssl  # only here: the other sends need none, and it costs as much as everything else

    context = ssl.create_default_context(cafile=send["ca_file"])
    if not send["verify"]:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    url = urlsplit(send["url"])
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=context)
    headers = {"Content-Type": "application/json", **send["secret_headers"]}
    try:
        connection.request(send["method"], url.path, json.dumps(send["body"]), headers)
        answer = connection.getresponse()
        said = answer.read(LONGEST_ANSWER).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    for secret in " ".join(send["secret_headers"].values()).split():
        said = said.replace(secret, "***")
    print(f"HTTP {answer.status}: {said}")
    return 0 if 200 <= answer.status < 300 else 1


def program(send: dict[str, Any], deadline: float) -> int:
    """Run an operator's program and print what came of it as one line of JSON. Returns 0, whatever its own status.

    It runs in a group of its own that the alarm kills whole: a program that calls others must not act late through
    them. What it leaves running at its end is killed too. The program has an alarm of its own, which `exec` keeps: it
    dies at the deadline also where this process is stopped.
    """
    import subprocess  # only here, as above

    order = json.dumps({**send["input"], "secrets": send["secrets"]}).encode()
    quiet = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    pipe = subprocess.PIPE
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        child = subprocess.Popen(
            send["argv"],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=quiet,
            cwd="/",
            start_new_session=True,
            preexec_fn=lambda: _in_time(deadline),  # this process has one thread
        )
    except OSError as problem:
        print(json.dumps({"status": None, "error": f"cannot be started: {problem.strerror}"}))
        return 0
    signal.signal(signal.SIGALRM, lambda number, frame: _end_late(child.pid))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    said, complaint, too_long = _converse(child, order)
    if too_long:
        _end_group(child.pid)
    status = child.wait()
    _end_group(child.pid)
    error = "its answer is too long" if too_long else _tidy(complaint, send["secrets"])
    print(json.dumps({"status": status, "said": _tidy(said, send["secrets"]), "error": error}))
    return 0


def _in_time(deadline: float) -> None:
    """In the child, before it becomes the program: past the deadline it goes no further."""
    arm(deadline)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})


def _converse(child: Any, order: bytes) -> tuple[bytes, bytes, bool]:
    """Give a `Popen` with three pipes its order; take what it says until it closes both outputs or says too much."""
    import selectors

    with contextlib.suppress(OSError):  # it did not want to know
        child.stdin.write(order)
        child.stdin.close()
    said, complaint = bytearray(), bytearray()
    with selectors.DefaultSelector() as open_ones:
        open_ones.register(child.stdout, selectors.EVENT_READ, said)
        open_ones.register(child.stderr, selectors.EVENT_READ, complaint)
        while open_ones.get_map() and len(said) <= LONGEST_ANSWER:
            for key, _ in open_ones.select():
                piece = os.read(key.fd, 65_536)
                if not piece:
                    open_ones.unregister(key.fileobj)
                elif key.data is said or len(complaint) < LONGEST_COMPLAINT:
                    key.data.extend(piece)
    return bytes(said), bytes(complaint[:LONGEST_COMPLAINT]), len(said) > LONGEST_ANSWER


def _tidy(text: bytes, secrets: dict[str, str]) -> str:
    clean = text.decode(errors="replace")
    for secret in secrets.values():
        clean = clean.replace(secret, "***")
    return clean.strip()


def _end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _end_late(leader: int) -> None:
    """The deadline: end the program with all its children, then this process as any sender ends."""
    _end_group(leader)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGALRM)


if __name__ == "__main__":
    sys.exit(main())
