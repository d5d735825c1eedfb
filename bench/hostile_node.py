"""What one hostile node costs the others: it floods, stalls and pours; a good node pulses meanwhile, and is timed.

    .venv/bin/python bench/hostile_node.py --seconds 8

The gateway is a process with SQLite; the hostile node has an address of its own (127.0.0.2) and does its worst from
another process. Exits with 1 when a good node's pulse fails, its 99th percentile is over `--limit` seconds, or the
gateway's memory grows by more than `--memory` MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.vocabulary import ClusterKind
from daytwo.gateway.identity import issue_token
from daytwo.intake import declare
from daytwo.store.engine import Store

GOOD, HOSTILE = "gpu-01", "gpu-02"
HOSTILE_ADDRESS: Final = ("127.0.0.2", 0)
PULSE_EVERY: Final = 0.05
CONNECTIONS: Final = 16
HALF_OPEN: Final = 2_000
BODY: Final = b'{"stream": 0, "boot_id": "b", "clock": 1.0, "records": []}'


class Place(NamedTuple):
    """The gateway's port, its process, and the nodes' tokens."""

    port: int
    pid: int
    good: str
    hostile: str


class Seen(NamedTuple):
    """How the good node fared: seconds for each pulse, failures, and what the gateway's memory grew by in MiB."""

    took: list[float]
    failed: int
    grew: float
    attacks: str


@contextmanager
def a_gateway(folder: Path) -> Iterator[Place]:
    """A gateway process with two nodes declared."""
    store = Store(f"sqlite:///{folder}/daytwo.db")
    store.migrate()
    now = datetime.now(UTC)
    group = NodeGroup(nodes=(GOOD, HOSTILE), gpus=8)
    declare(store, ClusterDefinition(name="east", kind=ClusterKind.SLURM, groups=(group,)), now=now)
    tokens = [issue_token(store, "east", node, now=now) for node in (GOOD, HOSTILE)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = {"DAYTWO_STATE_DIR": str(folder), "DAYTWO_GATEWAY_URL": f"http://127.0.0.1:{port}"}
    process = subprocess.Popen([sys.executable, "-m", "workers.gateway"], env={**os.environ, **environ})
    try:
        _until_up(port)
        yield Place(port, process.pid, *tokens)
    finally:
        process.terminate()
        process.wait()


def _until_up(port: int) -> None:
    for _ in range(300):
        with suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).is_success:
                return
        time.sleep(0.1)
    raise SystemExit("the gateway does not start")


# ---- what a hostile node does, each until it is stopped


def quiet(_place: Place, stop: threading.Event) -> str:
    """Nothing: what the others are measured against."""
    stop.wait()
    return "-"


def flood(place: Place, stop: threading.Event) -> str:
    """As many calls as it can with its own good token."""
    return _flood(place, stop, place.hostile)


def guess(place: Place, stop: threading.Event) -> str:
    """As many calls as it can with tokens that are none."""
    return _flood(place, stop, "dtn_guess")


def stall(place: Place, stop: threading.Event) -> str:
    """Half a request head on as many connections as it can have, each fed a byte now and then."""
    held: list[socket.socket] = []
    opened = 0
    while not stop.is_set():
        while len(held) < HALF_OPEN and not stop.is_set():
            try:
                connection = _connect(place)
                connection.sendall(b"POST /v1/nodes/gpu-02/pulse HTTP/1.1\r\nX: ")
            except OSError:
                break
            held.append(connection)
            opened += 1
        held = [connection for connection in held if _feed(connection)]
        stop.wait(0.2)
    return f"{opened} connections, {len(held)} held"


def pour(place: Place, stop: threading.Event) -> str:
    """Bodies without end, announced to nobody."""
    poured = 0
    while not stop.is_set():
        with suppress(OSError), _connect(place) as connection:
            connection.sendall(_head(place.hostile, "Transfer-Encoding: chunked"))
            while not stop.is_set():
                connection.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                poured += 0x10000
    return f"{poured / 2**20:.0f} MiB poured"


def _feed(connection: socket.socket) -> bool:
    try:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            if not connection.recv(100):
                raise OSError
        connection.send(b"x")
    except OSError:
        connection.close()
        return False
    return True


def _flood(place: Place, stop: threading.Event, token: str) -> str:
    counts: dict[bytes, int] = {}
    threads = [threading.Thread(target=_call, args=(place, stop, token, counts)) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ", ".join(f"{count} × {status.decode()}" for status, count in sorted(counts.items()))


def _call(place: Place, stop: threading.Event, token: str, counts: dict[bytes, int]) -> None:
    request = _head(token, f"Content-Length: {len(BODY)}") + BODY
    while not stop.is_set():
        with suppress(OSError), _connect(place) as connection:
            while not stop.is_set():
                connection.sendall(request)
                answer = connection.recv(4096)
                if not answer:
                    break
                if answer.startswith(b"HTTP/1.1 "):
                    counts[answer[9:12]] = counts.get(answer[9:12], 0) + 1


def _connect(place: Place) -> socket.socket:
    return socket.create_connection(("127.0.0.1", place.port), timeout=5, source_address=HOSTILE_ADDRESS)


def _head(token: str, more: str) -> bytes:
    lines = (f"POST /v1/nodes/{HOSTILE}/findings HTTP/1.1", "Host: g", f"Authorization: Bearer {token}", more)
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


ATTACKS: Final[dict[str, Callable[[Place, threading.Event], str]]] = {
    "nothing": quiet,
    "1000s of calls": flood,
    "guessed tokens": guess,
    "half-open heads": stall,
    "endless bodies": pour,
}


# ---- how the others fare


def measure(place: Place, attack: str, seconds: float) -> Seen:
    """Pulse as a good node while the attack runs."""
    took: list[float] = []
    failed = 0
    before = _memory(place.pid)
    arguments = [sys.executable, __file__, "--attack", attack, "--place", json.dumps(place)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdout
        attacker.stdout.readline()
        time.sleep(0.5)
        grew = 0.0
        end = time.monotonic() + seconds
        with httpx.Client(trust_env=False, timeout=20) as http:
            while time.monotonic() < end:
                began = time.monotonic()
                failed += not _pulses(http, place)
                took.append(time.monotonic() - began)
                grew = max(grew, _memory(place.pid) - before)
                time.sleep(PULSE_EVERY)
        said, _ = attacker.communicate("stop\n")
    return Seen(took, failed, grew, said.strip())


def _pulses(http: httpx.Client, place: Place) -> bool:
    now = time.time()
    body = {"stream": 0, "sequence": 0, "boot_id": "b", "clock": now, "version": "0", "started_at": now}
    more = {"identity": {}, "digest": "d", "checks": None, "inventory": None, "answers": []}
    url = f"http://127.0.0.1:{place.port}/v1/nodes/{GOOD}/pulse"
    try:
        answer = http.post(url, json=body | more, headers={"Authorization": f"Bearer {place.good}"})
    except httpx.HTTPError:
        return False
    return answer.status_code in (200, 429)


def _memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _attack(name: str, place: Place) -> None:
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    print("begun", flush=True)
    print(ATTACKS[name](place, stop))


def main() -> int:
    """Run every attack in turn and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each attack (default 8)")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds for a good node's pulse (default 1)")
    parser.add_argument("--memory", type=float, default=64.0, help="MiB the gateway may grow by (default 64)")
    parser.add_argument("--attack", choices=ATTACKS, help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        _attack(options.attack, Place(*json.loads(options.place)))
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as folder, a_gateway(Path(folder)) as place:
        print(f"{'the hostile node does':22} {'pulses':>6} {'failed':>6} {'p50':>8} {'p99':>8} {'grew by':>9}")
        for attack in ATTACKS:
            bad += not _report(attack, measure(place, attack, options.seconds), options)
    return 1 if bad else 0


def _report(attack: str, seen: Seen, options: argparse.Namespace) -> bool:
    p99 = statistics.quantiles(seen.took, n=100)[98] if len(seen.took) > 1 else max(seen.took)
    p50 = statistics.median(seen.took)
    numbers = f"{len(seen.took):6} {seen.failed:6} {p50 * 1000:5.0f} ms {p99 * 1000:5.0f} ms {seen.grew:5.1f} MiB"
    print(f"{attack:22} {numbers}  {seen.attacks}", flush=True)
    return seen.failed == 0 and p99 <= options.limit and seen.grew <= options.memory


if __name__ == "__main__":
    sys.exit(main())
