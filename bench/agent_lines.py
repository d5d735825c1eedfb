"""The agent under a kernel that prints 2,000 lines a second: nothing is lost, and a fault among them is told at once.

    .venv/bin/python bench/agent_lines.py --seconds 60

A real agent process reads a kernel-format file that grows by so many lines each second; one line in each second is an
Xid, each of another code and GPU. Beside it, in the same run, a bare Python process reads the same file line by line
and splits each, which is the least that anybody who reads a log can do. Exits with 1 when a fault was lost or told
late, or when the agent takes more than the limit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final

from agent_footprint import PSS_LIMIT_MIB, Gateway, Tree

from daytwo.lab.fake_nvml.harness import FakeNvml, build

LATE_SECONDS: Final = 5.0
RATIO: Final = 40.0
CORE: Final = 0.1
"""Of one core, at 2,000 lines a second: a node that prints so has other worries, but its jobs still run."""
TICKS: Final = 20
"""Times in a second at which lines are written."""
CODES: Final = (48, 63, 64, 74, 79, 94, 95, 109, 119, 120)
BARE: Final = """
import sys, time
with open(sys.argv[1], "rb") as file:
    while True:
        for line in file:
            head, _, text = line.partition(b";")
            head.split(b",")
        time.sleep(0.05)
"""
ORDINARY: Final = "usb 1-1: new high-speed USB device number {} using xhci_hcd, and some more words of a usual length"
XID: Final = "NVRM: Xid (PCI:0000:{:02x}:00): {}, pid=1, name=python, bench"


class Told(Gateway):
    """Notes when it heard of each record."""

    heard: ClassVar[dict[tuple[str, str], float]] = {}
    lock = threading.Lock()

    def on_body(self, body: dict[str, Any]) -> None:
        """Keep when each fault of each GPU came first."""
        with self.lock:
            for record in body.get("records", ()):
                self.heard.setdefault((record["fault"], record["entity"]), time.time())


@contextmanager
def told() -> Iterator[str]:
    """A gateway that acknowledges everything."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Told) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def write(file: Path, seconds: int, lines: int) -> tuple[dict[tuple[str, int], float], int]:
    """Print so many lines a second; returns when each Xid was printed, and how many lines there were."""
    printed: dict[tuple[str, int], float] = {}
    number, began = 0, time.monotonic()
    with file.open("a", buffering=1) as log:
        for tick in range(seconds * TICKS):
            batch = []
            for _ in range(lines // TICKS):
                number += 1
                batch.append(f"6,{number},{number * 500},-;{ORDINARY.format(number)}\n")
            if tick % TICKS == TICKS // 2:
                second = tick // TICKS
                code, gpu = CODES[second % len(CODES)], second // len(CODES) % 8
                number += 1
                batch.append(f"3,{number},{number * 500},-;{XID.format(0x1A + gpu, code)}\n")
                printed.setdefault((f"xid-{code}", gpu), time.time())
            log.write("".join(batch))
            time.sleep(max(0.0, began + (tick + 1) / TICKS - time.monotonic()))
    return printed, number


def measure(seconds: int, lines: int) -> dict[str, float]:
    """Everything that is printed."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name, told() as url:
        folder = Path(name)
        log = folder / "kernel.log"
        log.write_text("6,0,0,-;Linux version 6.1.0 (bench)\n")
        (folder / "token").write_text("bench")
        fake = FakeNvml(folder / "gpus", gpus=8)
        options = [
            "--node",
            "bench",
            "--gateway",
            url,
            "--token-file",
            f"{folder}/token",
            "--kernel-log",
            f"file:{log}",
        ]
        command = [sys.executable, "-m", "daytwo.agent.main", *options, "--state-dir", f"{folder}/state"]
        agent = subprocess.Popen(command, env=os.environ | fake.environment(build(folder / "build")))
        bare = subprocess.Popen([sys.executable, "-c", BARE, str(log)])
        try:
            time.sleep(10)  # the GPUs have been read once
            trees = Tree(agent), Tree(bare)
            before = [tree.cpu_seconds() for tree in trees]
            began = time.monotonic()
            printed, count = write(log, seconds, lines)
            lasted = time.monotonic() - began
            used = [tree.cpu_seconds() - was for tree, was in zip(trees, before, strict=True)]
            time.sleep(2 * LATE_SECONDS)
            heard = {(fault, _index(fake, entity)): at for (fault, entity), at in Told.heard.items()}
            late = [heard[key] - at for key, at in printed.items() if key in heard]
            return {
                "lines": count,
                "rate": count / lasted,
                "faults": len(printed),
                "lost": len(printed) - len(late),
                "latest": max(late, default=0.0),
                "core": used[0] / lasted,
                "bare": used[1] / lasted,
                "pss": trees[0].pss_mib(),
            }
        finally:
            for process in (agent, bare):
                process.terminate()
                process.wait()


def _index(fake: FakeNvml, entity: str) -> int:
    return next((number for number in range(8) if fake.uuid(number) == entity), -1)


def report(found: dict[str, float]) -> int:
    """Print the figures; returns the exit status."""
    ratio = found["core"] / found["bare"] if found["bare"] else 0.0
    rows = (
        ("lines", f"{found['lines']:.0f}", ""),
        ("lines a second", f"{found['rate']:.0f}", ""),
        ("faults among them", f"{found['faults']:.0f}", ""),
        ("faults that were not told", f"{found['lost']:.0f}", "0"),
        ("told after, slowest, s", f"{found['latest']:.2f}", f"≤ {LATE_SECONDS:g}"),
        ("agent, share of a core", f"{found['core']:.3f}", f"≤ {CORE:g}"),
        ("bare reader, share of a core", f"{found['bare']:.3f}", ""),
        ("ratio", f"{ratio:.1f}", f"≤ {RATIO:g}"),
        ("agent, PSS MiB", f"{found['pss']:.1f}", f"≤ {PSS_LIMIT_MIB:g}"),
    )
    print("\n".join(f"{name:35}{value:>10}  {limit}" for name, value, limit in rows))
    print(f"\n{os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}")
    well = found["lost"] == 0 and found["latest"] <= LATE_SECONDS and found["core"] <= CORE
    return int(not (well and ratio <= RATIO and found["pss"] <= PSS_LIMIT_MIB))


def main() -> int:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="how long the kernel prints (default 60)")
    parser.add_argument("--lines", type=int, default=2000, help="lines a second (default 2000)")
    given = parser.parse_args()
    return report(measure(given.seconds, given.lines))


if __name__ == "__main__":
    sys.exit(main())
