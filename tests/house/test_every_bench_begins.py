"""No test runs a bench, so that at least its imports and its arguments are looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("program", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.stem)
def test_every_bench_says_what_it_measures(program: Path) -> None:
    command = [sys.executable, str(program), "--help"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert program.name in told.stdout
