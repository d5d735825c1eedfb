"""Feeds every parser for as long as it is told to: `make fuzz ARGS="--seconds 60"`; `--list` names the targets.

Coverage-guided by atheris (libFuzzer), a child for each target, one after the other. What it learns stays in `.fuzz/`,
so that the next run goes on from there. An input that broke something stays there too, and its path is printed: give
it as `--input FILE` with its target to see it again. Exit status: 0 nothing found, 1 something, 2 it cannot run here.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / ".fuzz"
LONGEST_INPUT: Final = 4096
SLOWEST_SECONDS: Final = 10
MOST_MEMORY_MIB: Final = 1024
NOISE: Final = ("#", "INFO: Instr", "WARNING: Failed to find function")
DONE: Final = re.compile(r"#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+)")


def main() -> int:
    options = _options()
    if find_spec("atheris") is None:
        print("atheris is not installed: there is a wheel for Linux on x86_64 only. `make test` runs the short sample.")
        return 2
    if options.child:
        return _feed(options.child, options.rest)
    names = options.target or _names()
    if options.list:
        print("\n".join(names))
        return 0
    found = [name for name in names if not _run(name, options.seconds / len(names), options)]
    print(f"broke: {', '.join(found)}" if found else "nothing found")
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="altogether, shared by the targets (default 60)")
    parser.add_argument("--target", action="append", help="only this one; may be given again")
    parser.add_argument("--seed", type=int, default=1, help="of libFuzzer's chance (default 1)")
    parser.add_argument("--input", type=Path, help="feed this file once")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def _names() -> list[str]:
    from tests.fuzz.targets import all_targets

    return list(all_targets())


def _run(name: str, seconds: float, options: argparse.Namespace) -> bool:
    """Feed one target in a child; print a line, or all that it said if it broke. Returns whether it held."""
    began = time.monotonic()
    child = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", "--child", name, "--", *_arguments(name, seconds, options)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        errors="backslashreplace",
        check=False,
    )
    said = child.stdout + child.stderr
    numbers = DONE.search(said)
    runs, covered, features = numbers.groups() if numbers else ("?", "?", "?")
    held = child.returncode == 0
    took = time.monotonic() - began
    verdict = "held" if held else "BROKE"
    print(f"{name:24} {verdict:6} {runs:>9} runs {covered:>6} edges {features:>6} features {took:6.1f} s", flush=True)
    if not held:
        print("\n".join(line for line in said.splitlines() if not line.startswith(NOISE))[-6000:])
    return held


def _arguments(name: str, seconds: float, options: argparse.Namespace) -> list[str]:
    if options.input:
        return [str(options.input)]
    broken, corpus = KEPT / "broken", KEPT / name
    for folder in (broken, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    limits = {
        "max_total_time": max(1, round(seconds)),
        "seed": options.seed,
        "max_len": LONGEST_INPUT,
        "timeout": SLOWEST_SECONDS,
        "rss_limit_mb": MOST_MEMORY_MIB,
        "print_final_stats": 0,
    }
    return [str(corpus), f"-artifact_prefix={broken}/{name}-", *(f"-{key}={value}" for key, value in limits.items())]


def _feed(name: str, arguments: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=["daytwo"]):
        from tests.fuzz.targets import all_targets
    target = all_targets()[name]
    corpus = Path(arguments[0])
    if corpus.is_dir():
        for number, sample in enumerate(target.samples or _chance()):
            (corpus / f"sample-{number}").write_bytes(sample)

    def feed(data: bytes) -> None:
        target.feed(data)

    atheris.Setup([sys.argv[0], *arguments], feed)
    atheris.Fuzz()
    return 0


def _chance() -> list[bytes]:
    """What a target that makes its own input needs to begin with: enough bytes to make some."""
    chance = random.Random(1)
    return [chance.randbytes(size) for size in range(256, LONGEST_INPUT, 256)]


if __name__ == "__main__":
    sys.exit(main())
