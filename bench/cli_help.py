"""How long `daytwo --help` takes, against an empty click program in the same run. `python bench/cli_help.py`.

The two alternate, so that whatever else the machine does hits both. Judged is processor time, which is all they spend,
as the mean of the middle half of the runs. Exits with 1 when the ratio is above the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 1.3
ROUNDS = 30
EMPTY = """
import click
@click.group()
def root():
    "An empty program."
root()
"""
DAYTWO = "from daytwo.cli.main import main; main()"


def run(program: str, *words: str) -> tuple[float, float]:
    """Processor and wall seconds of one run, from start to exit."""
    before, began = os.times(), time.perf_counter()
    command = [sys.executable, "-c", program, *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    wall, after = time.perf_counter() - began, os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, wall


def measure(*words: str) -> dict[str, float]:
    """Milliseconds of `daytwo WORDS --help` and of the empty program, and the ratio of their processor time."""
    run(EMPTY, "--help"), run(DAYTWO, *words, "--help")
    pairs = [(run(EMPTY, "--help"), run(DAYTWO, *words, "--help")) for _ in range(ROUNDS)]
    empty, ours = ([_middle(column) for column in zip(*side, strict=True)] for side in zip(*pairs, strict=True))
    return {
        "empty_cpu_ms": round(empty[0] * 1000, 1),
        "daytwo_cpu_ms": round(ours[0] * 1000, 1),
        "empty_wall_ms": round(empty[1] * 1000, 1),
        "daytwo_wall_ms": round(ours[1] * 1000, 1),
        "ratio": round(ours[0] / empty[0], 3),
    }


def _middle(values: Iterable[float]) -> float:
    return statistics.fmean(sorted(values)[ROUNDS // 4 : -ROUNDS // 4])


def main() -> int:
    """Print one JSON line a help page; return the exit code."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    worst = 0.0
    for words in ((), ("repairs",), ("repairs", "approve")):
        found = measure(*words)
        worst = max(worst, found["ratio"])
        print(json.dumps({"help": " ".join(["daytwo", *words, "--help"]), **found, "limit": LIMIT}))
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
