"""Where a Slurm lab takes its programs from: those installed here, or another release, unpacked into a folder.

An unpacked release is a `usr` of its own (`scripts/debian-packages.sh slurm-24.11` makes one). Its programs run in a
mount namespace in which it stands in the place of /usr; nothing of it is seen outside.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NEEDED: Final = ("slurmctld", "slurmd", "slurmstepd", "scontrol", "squeue", "sinfo", "sbatch", "scancel")
ACCOUNTING: Final = ("slurmdbd", "sacctmgr", "sacct", "mariadbd")
ALWAYS_INSTALLED: Final = ("munged", "mariadbd")
CLIENTS: Final = ("scontrol", "squeue", "sinfo", "sacctmgr", "sacct")
PACKAGES: Final = "slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins"
ACCOUNTING_PACKAGES: Final = "slurmdbd slurm-wlm-mysql-plugin mariadb-server-core"
_IN_ITS_PLACE: Final = 'mount --bind "$0" /usr && exec "$@"'


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one Slurm. `tree`: the folder of an unpacked release; none: what is installed, found on `path`.

    munged and mariadbd are always the installed ones: what they speak is the same for all releases.
    """

    tree: Path | None = None
    path: str = PATH

    def missing(self) -> str:
        """Say in one sentence why no lab can run with them here, or return an empty string."""
        lacks = [program for program in ("munged", *NEEDED) if self._found(program) is None]
        if lacks and (self.tree is None or lacks == ["munged"]):
            return f"{', '.join(lacks)} not found; on Debian: apt-get install --no-install-recommends {PACKAGES}"
        if lacks:
            return f"{self.tree} does not hold {', '.join(lacks)}"
        if os.geteuid() != 0:
            return "a Slurm lab needs root: it makes device nodes and process namespaces"
        probe = ["unshare", "--pid", "--fork", "--mount-proc", *self.wrap("true")]
        if subprocess.run(probe, capture_output=True, check=False).returncode:
            return "a Slurm lab needs process and mount namespaces (unshare), which this machine refuses"
        return ""

    def missing_accounting(self) -> str:
        """Say in one sentence why they cannot keep accounts, or return an empty string."""
        lacks = [program for program in ACCOUNTING if self._found(program) is None]
        if not lacks:
            return ""
        return f"{', '.join(lacks)} not found; on Debian: apt-get install --no-install-recommends {ACCOUNTING_PACKAGES}"

    def find(self, name: str) -> str:
        """Return the absolute path of a program, as it is where `wrap` runs it."""
        # With Debian's emulator package the plain names point to a build that cannot run; these are the real ones.
        return self._found(f"{name}-wlm") or self._found(name) or name

    def wrap(self, *argv: str) -> list[str]:
        """Return the command line that runs `argv` with these programs in the place of the installed ones."""
        if self.tree is None:
            return list(argv)
        private = ("unshare", "--mount", "--propagation", "private", "sh", "-c", _IN_ITS_PLACE)
        return [*private, str(self.tree / "usr"), *argv]

    def write_clients(self, folder: Path) -> None:
        """Make a folder of Slurm's client programs, for `SlurmAccess.bin`."""
        folder.mkdir(exist_ok=True)
        for name in CLIENTS:
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(self.wrap(self.find(name)))} "$@"\n')
            script.chmod(0o755)

    def _found(self, name: str) -> str | None:
        if self.tree is None or name in ALWAYS_INSTALLED:
            plain = shutil.which(name, path=self.path)
            return plain or (shutil.which(f"{name}-wlm", path=self.path) if not name.endswith("-wlm") else None)
        inside = (Path("/usr") / folder / word for folder in ("sbin", "bin") for word in (name, f"{name}-wlm"))
        return next((str(place) for place in inside if (self.tree / place.relative_to("/")).exists()), None)


INSTALLED: Final = Programs()


def last_words(done: subprocess.CompletedProcess[str], argv: Sequence[str]) -> str:
    """Return what a program that failed has said, with how it was called."""
    return f"{' '.join(argv)}: exit status {done.returncode}: {done.stdout}{done.stderr}".strip()
