"""What the agent costs a node that is healthy: PSS and processor time of parent and child, over `--seconds`.

    .venv/bin/python bench/agent_footprint.py --seconds 600

The agent runs as on a node: real kernel log (a file where /dev/kmsg cannot be read), eight GPUs of the library that
pretends to be NVML, a gateway that answers on this machine. Beside it, in the same run, sleeps the smallest pair of
Python processes that could do its job at all: a bare interpreter, and a bare interpreter as its child. Ratios to that
pair carry over to other machines; megabytes and seconds do so only roughly.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from daytwo.lab.fake_nvml.harness import FakeNvml, build

PSS_LIMIT_MIB = 40.0
CPU_LIMIT = 0.001
SETTLE_SECONDS = 10.0
BARE = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; sys.stdin.read()'])"


class Gateway(BaseHTTPRequestHandler):
    """Answers every call as a gateway with nothing to ask does."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Acknowledge what came."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.on_body(body)
        answer: dict[str, Any] = {"come_back_seconds": 60, "requests": [], "withdrawn": [], "send_full": False}
        if "records" in body:
            answer |= {"stream": 1, "acknowledged": body["records"][-1]["sequence"]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def on_body(self, body: dict[str, Any]) -> None:
        """What `agent_lines.py` notes of a body; here nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Tree:
    """A process and its children, read from /proc."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def pids(self) -> list[int]:
        """Return the process and its children; it has no grandchildren."""
        pid = self.process.pid
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        return [pid, *(int(child) for task in tasks for child in task.read_text().split())]

    def pss_mib(self) -> float:
        """Return the proportional memory of all, MiB."""
        return sum(_pss_kib(pid) for pid in self.pids()) / 1024

    def cpu_seconds(self) -> float:
        """Return the processor time of all so far."""
        return sum(_cpu_nanoseconds(pid) for pid in self.pids()) / 1e9


def _pss_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _cpu_nanoseconds(pid: int) -> int:
    # Exact, unlike the ticks of /proc/<pid>/stat: an idle agent uses less than one in a minute.
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[Tree]:
    try:
        yield Tree(process)
    finally:
        process.terminate()
        process.wait()
        if process.stdin:
            process.stdin.close()


@contextmanager
def _gateway() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _agent(folder: Path, gateway: str) -> subprocess.Popen[bytes]:
    (folder / "token").write_text("bench")
    (folder / "kernel.log").touch()
    log = "kmsg" if os.access("/dev/kmsg", os.R_OK) else f"file:{folder}/kernel.log"
    options = ["--node", "bench", "--gateway", gateway, "--token-file", f"{folder}/token", "--kernel-log", log]
    command = [sys.executable, "-m", "daytwo.agent.main", *options, "--state-dir", f"{folder}/state"]
    fake = FakeNvml(folder / "gpus", gpus=8)
    return subprocess.Popen(command, env=os.environ | fake.environment(build(folder / "build")))


def measure(seconds: float) -> dict[str, float]:
    """Return the cost of the agent and of the bare pair over this long."""
    with tempfile.TemporaryDirectory() as name, _gateway() as url:
        bare = subprocess.Popen([sys.executable, "-c", BARE], stdin=subprocess.PIPE)
        with _ended(bare) as smallest, _ended(_agent(Path(name), url)) as agent:
            time.sleep(min(SETTLE_SECONDS, seconds))
            before = agent.cpu_seconds()
            time.sleep(seconds)
            return {
                "seconds": seconds,
                "pss_mib": round(agent.pss_mib(), 1),
                "bare_pss_mib": round(smallest.pss_mib(), 1),
                "pss_ratio": round(agent.pss_mib() / smallest.pss_mib(), 2),
                "cpu_of_a_core": round((agent.cpu_seconds() - before) / seconds, 6),
                "processes": len(agent.pids()),
            }


def main() -> int:
    """Print the figures as JSON; exit status 1 if one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to measure (default 600)")
    figures = measure(parser.parse_args().seconds)
    print(json.dumps(figures | {"pss_limit_mib": PSS_LIMIT_MIB, "cpu_limit": CPU_LIMIT}, indent=2))
    return int(figures["pss_mib"] > PSS_LIMIT_MIB or figures["cpu_of_a_core"] > CPU_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
