"""The child that sends or dies: it arms an alarm at the deadline, waits for the last word, and only then writes.

A paused or slow parent can therefore never send late: the alarm survives `exec`, and a pending alarm kills the child
before its next instruction. Standard library only and started without `site`, so that it is up in some 20 ms.

Input: one JSON line `{"deadline": <CLOCK_MONOTONIC seconds>, "send": {…}}`; it answers `armed`; then a line `go`.
End of input instead of `go`: it exits with 75 and has sent nothing. Killed by SIGALRM: perhaps sent; look.
Secrets come in by that line alone, which no other process can read, and are taken out of what is answered.
"""

import http.client
import json
import os
import signal
import socket
import sys
import time
from urllib.parse import urlsplit

NOT_SENT = 75
LONGEST_ANSWER = 65_536


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
        os.execvpe(send["argv"][0], send["argv"], {**os.environ, **send["env"]})  # noqa: S606  # argv, no shell
    return https(send) if send["type"] == "https" else request(send)


def arm(deadline: float) -> None:
    """Let SIGALRM end this process at `deadline` (CLOCK_MONOTONIC seconds)."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-6))


def request(send: dict) -> int:  # type: ignore[type-arg]  # the decoded JSON of `daytwo.domain.seams.Request`
    """Send one HTTP request over a Unix socket and print the answer. Returns 0 for a 2xx status."""
    connection = _UnixConnection(send["socket"])
    connection.request(send["method"], send["path"], json.dumps(send["body"]), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    print(answer.read().decode(errors="replace"))
    return 0 if 200 <= answer.status < 300 else 1


def https(send: dict) -> int:  # type: ignore[type-arg]  # the decoded JSON of `daytwo.domain.seams.HttpsRequest`
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


if __name__ == "__main__":
    sys.exit(main())
