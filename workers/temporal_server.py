"""The Temporal development server as `daytwo up` runs it: its command line, and when it is ready."""

from __future__ import annotations

import asyncio
import ssl
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from daytwo.domain.errors import Failed

NAMESPACE: Final = "daytwo"
RETENTION: Final = "720h"
"""How long a closed repair's history stays readable. The server's default is a day, shorter than a weekend."""

_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

_DYNAMIC_CONFIG: Final = (
    # The default polls its one shard 20 times a second: every task would wait up to 50 ms.
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    "history.visibilityProcessorMaxPollRPS=2000",
    # Else a timer or a retry of less than a second waits up to one: it reads its timers that far ahead.
    'history.timerProcessorMaxTimeShift="1ms"',
    # Four partitions are for many workers; each costs memory and polls.
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    # New search attributes are usable at once.
    "system.forceSearchAttributesCacheRefreshOnRead=true",
    # A stuck workflow shows in searches after two failed tasks.
    "system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute=2",
)


@dataclass(frozen=True, slots=True)
class TemporalServer:
    """A development server on this machine: SQLite in `database`, both ports on the loopback address only."""

    database: Path
    port: int
    ui_port: int

    @property
    def address(self) -> str:
        """Host and port for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        """Where people look at workflows."""
        return f"http://127.0.0.1:{self.ui_port}"

    def command(self) -> tuple[str, ...]:
        """The command line that runs it in the foreground."""
        config = tuple(word for value in _DYNAMIC_CONFIG for word in ("--dynamic-config-value", value))
        return (
            *(program(), "server", "start-dev", "--ip", "127.0.0.1", "--log-level", "warn", "--ui-disable-news-fetch"),
            *("--port", str(self.port), "--ui-port", str(self.ui_port), "--namespace", NAMESPACE),
            *("--db-filename", str(self.database)),
            *("--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"),
            *config,
        )

    async def is_ready(self) -> bool:
        """Whether the namespace can be read, asked through the UI so that both are known to work."""
        try:
            async with httpx.AsyncClient(timeout=2, trust_env=False, verify=_NO_TLS) as client:
                answer = await client.get(f"{self.ui_url}/api/v1/namespaces/{NAMESPACE}")
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def keep_histories(self) -> None:
        """Set the namespace's retention. Raises `Failed` with the program's own words."""
        process = await asyncio.create_subprocess_exec(
            *(program(), "operator", "namespace", "update", "--namespace", NAMESPACE),
            *("--retention", RETENTION, "--address", self.address),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        if process.returncode != 0:
            raise Failed(f"Temporal refused retention {RETENTION}: {output.decode(errors='replace').strip()}")


def program() -> str:
    """The server's program, which a wheel puts beside Python. Raises `Failed` if it is not installed."""
    path = Path(sysconfig.get_path("scripts")) / "temporal"
    if not path.exists():
        raise Failed(f"{path} is missing; install daytwo with its extra `devserver`, or run a Temporal of your own")
    return str(path)
