"""An earlier version of daytwo, out of git, with processes of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from daytwo.settings import Settings

ROOT: Final = Path(__file__).parents[2]
COMMITS: Final = {"0.1.0": "378ef93"}
"""Where each released version is."""
AMENDED: Final = {
    "0.1.0": {
        "daytwo/domain/seams.py": (
            (r"class (NodeFacts|Act)\(Frozen\):", r"class \1(Lasting):"),
            ("Frozen, Mark", "Frozen, Lasting, Mark"),
        ),
    }
}
"""What an earlier version lacked for running beside a later one. 0.1.0 refused rows in which there is more than it
knows: its workers and controllers are stopped before those of 0.2 start. What is shown with it holds from 0.2 on."""
PREPARE: Final = """
import dataclasses, json, sys
from pathlib import Path
from tests.workflows.plane import prepared
settings = prepared(Path(sys.argv[1]), int(sys.argv[2]))
print(json.dumps({name: str(value) for name, value in dataclasses.asdict(settings).items()}))
"""


def missing(version: str) -> str:
    """Why this version cannot be run here; empty if it can."""
    done = subprocess.run(["git", "-C", ROOT, "cat-file", "-e", COMMITS[version]], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"NOT RUN: daytwo {version} ({COMMITS[version]}) is not in this clone"


class Earlier:
    """The tree of one version."""

    def __init__(self, version: str, folder: Path) -> None:
        archive = subprocess.run(["git", "-C", ROOT, "archive", COMMITS[version]], capture_output=True, check=True)
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        self.folder = folder
        for path, edits in AMENDED[version].items():
            for pattern, replacement in edits:
                self._edit(folder / path, pattern, replacement)

    def _edit(self, file: Path, pattern: str, replacement: str) -> None:
        text, count = re.subn(pattern, replacement, file.read_text())
        assert count, f"{file}: {pattern}"
        file.write_text(text)

    def prepare(self, root: Path, nodes: int) -> Settings:
        """Settings of a new plane, with a store as this version makes it: its cluster declared, its nodes' tokens."""
        command = [sys.executable, "-c", PREPARE, root, nodes]
        env = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            list(map(str, command)), cwd=self.folder, env=env, capture_output=True, text=True, check=True
        )
        said: dict[str, Any] = json.loads(done.stdout)
        paths = {name: Path(said[name]) for name in ("state_dir", "service_socket")}
        return Settings(**{**said, **paths})

    @contextlib.contextmanager
    def running(self, module: str, env: dict[str, str], log: Path, *options: object) -> Iterator[None]:
        """One process of this version while the block lasts."""
        with log.open("ab") as file:
            child = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, options)],
                cwd=self.folder,
                env={**env, "PYTHONPATH": str(self.folder)},
                stdout=file,
                stderr=file,
            )
        try:
            yield
        finally:
            child.terminate()
            try:
                child.wait(30)
            finally:
                child.kill()
