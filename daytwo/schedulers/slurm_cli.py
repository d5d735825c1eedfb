"""Runs Slurm's programs and reads their answers. Used by the Slurm scheduler and the Slurm reboot driver.

Nothing is written from here: writes are `Command`s that the ledger of intents carries out.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from datetime import datetime
from pathlib import Path
from typing import Final

from daytwo.domain.definition import SlurmAccess
from daytwo.domain.errors import NotFound, UnknownAnswer, Unreachable
from daytwo.domain.seams import Command, Recorded
from daytwo.schedulers import slurm_accounts as accounts
from daytwo.schedulers import slurm_text
from daytwo.schedulers.slurm_text import SlurmJob, SlurmNode, SlurmReservation

READ_SECONDS: Final = 20.0
"""slurmctld of a large cluster can take MessageTimeout (10 s by default) to answer, and the client tries twice."""
SCONTROL_JSON_SINCE: Final = (23, 2)
"""Before it only sinfo prints nodes as JSON; from it on sinfo prints groups of nodes instead."""


class SlurmCli:
    """The programs of one Slurm. Every read raises `Unreachable` or `UnknownAnswer`, never an empty answer."""

    def __init__(self, access: SlurmAccess, cluster: str, *, read_seconds: float = READ_SECONDS) -> None:
        self._cluster = cluster
        self._bin = access.bin
        self._environment = {"SLURM_CONF": access.conf} if access.conf else {}
        self._read_seconds = read_seconds

    def command(self, *arguments: str) -> Command:
        """Describe a `scontrol` write."""
        return Command(argv=(self._program("scontrol"), *arguments), env=self._environment)

    async def config(self) -> dict[str, str]:
        """The configuration that slurmctld runs with."""
        return slurm_text.read_config(await self._read("scontrol", "show", "config"))

    async def nodes(self) -> tuple[SlurmNode, ...]:
        """All nodes."""
        version = slurm_text.read_version(await self._read("scontrol", "--version"))
        argv = ("scontrol", "--json", "show", "nodes") if version >= SCONTROL_JSON_SINCE else ("sinfo", "--json")
        return slurm_text.read_nodes(await self._read(*argv))

    async def jobs(self) -> tuple[SlurmJob, ...]:
        """All jobs that Slurm still remembers, ended ones too."""
        return slurm_text.read_jobs(await self._read("squeue", "--json"))

    async def recorded(self, node: str, since: datetime) -> tuple[Recorded, ...]:
        """What slurmdbd has kept of a node since then: its events, then the jobs that were taken off it."""
        start, events = accounts.slurm_time(since), ",".join(accounts.EVENT_FIELDS)
        shown = ("-nP", "show", "event", f"nodes={node}", f"Start={start}", f"format={events}")
        past = ("-nPX", "-D", "-a", "-N", node, "-S", start, "-o", ",".join(accounts.JOB_FIELDS))
        found = accounts.read_events(await self._read("sacctmgr", *shown, may_be_empty=True))
        return found + accounts.read_interrupted(await self._read("sacct", *past, may_be_empty=True))

    async def reservations(self) -> tuple[SlurmReservation, ...]:
        """All reservations, those to come too."""
        return slurm_text.read_reservations(await self._read("scontrol", "-o", "show", "reservations"))

    async def confirm_absent(self, node: str) -> NotFound:
        """Return the error for a node that Slurm itself does not know. Raises `UnknownAnswer` if it does."""
        code, out, err = await self._run("scontrol", "-o", "show", "node", node)
        if code and "not found" in out + err:
            return NotFound(f"node {node!r}: the Slurm of cluster {self._cluster} does not know it")
        raise UnknownAnswer(f"Slurm's list of nodes lacks {node!r}, but asked about it, it says {(out + err)[:120]!r}")

    async def _read(self, *argv: str, may_be_empty: bool = False) -> str:
        code, out, err = await self._run(*argv)
        if code:
            raise Unreachable(f"{self._cluster}: {' '.join(argv)}: exit status {code}: {(err or out).strip()[:200]}")
        if not out.strip() and not (may_be_empty and not err.strip()):
            raise UnknownAnswer(f"{self._cluster}: {' '.join(argv)} answered nothing, and said {err.strip()[:200]!r}")
        return out

    async def _run(self, *argv: str) -> tuple[int, str, str]:
        environment = {**os.environ, **self._environment, "LANG": "C", "LC_ALL": "C"}
        try:
            child = await asyncio.create_subprocess_exec(
                *(self._program(argv[0]), *argv[1:]), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environment
            )
        except OSError as error:
            raise Unreachable(f"{self._cluster}: {argv[0]} cannot be started: {error}") from None
        try:
            out, err = await asyncio.wait_for(child.communicate(), self._read_seconds)
        except TimeoutError:
            raise Unreachable(f"{self._cluster}: {' '.join(argv)}: no answer within {self._read_seconds:g} s") from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        return child.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")

    def _program(self, name: str) -> str:
        return str(Path(self._bin) / name) if self._bin else name
