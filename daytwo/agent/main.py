"""`daytwo-agent`: the agent of one node as a process. Each option is also a variable, `DAYTWO_AGENT_<OPTION>`.

The threads behind the seams wake the loop; without them it sleeps until the agent itself wants its next step.
SIGTERM and SIGINT end it within a second. Exit status 0 after a signal, 2 for a bad argument.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

from daytwo import __version__
from daytwo.agent.core import Agent, AgentSettings, Seams
from daytwo.agent.evidence import Evidence
from daytwo.agent.gpus import NvmlGpus
from daytwo.agent.identity import BOOT_ID, SystemClock, boot_id, dmi
from daytwo.agent.journal import DiskJournal, Locked
from daytwo.agent.journal_log import PROGRAM as JOURNALCTL
from daytwo.agent.journal_log import JournalLog
from daytwo.agent.kernel_log import KMSG, FileLog, KmsgLog, LogReader, is_readable
from daytwo.agent.link import Address, HttpLink
from daytwo.agent.spool import Spool
from daytwo.process import harden

PREFIX: Final = "DAYTWO_AGENT_"
ACCEPT_USER_RECORDS: Final = "DAYTWO_TEST_ACCEPT_USER_RECORDS"
BOOT_ID_FILE: Final = "DAYTWO_TEST_BOOT_ID_FILE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent until a signal ends it; return the exit status."""
    harden(readable=True)
    options = parse(sys.argv[1:] if arguments is None else arguments, os.environ)
    wake = threading.Event()
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()
        wake.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        process = Process(options, wake)
    except (Locked, OSError) as error:
        say(f"cannot start: {error}")
        return 1
    process.run(stopping)
    return 0


class Process:
    """The agent with its real seams."""

    def __init__(self, options: argparse.Namespace, wake: threading.Event) -> None:
        self._wake = wake
        clock = SystemClock()
        self._journal = DiskJournal(options.state_dir)
        self._log = _kernel_log(options.kernel_log, clock, wake.set, boot_id())
        say(f"the kernel's messages come from {self._log.status().source}")
        self._gpus = NvmlGpus(wake.set)
        self._link = HttpLink(Address(options.gateway, options.node, options.token_file, options.ca_file), wake.set)
        self._evidence = Evidence(self._log.status().source, wake.set)
        seams = Seams(self._log, self._gpus, self._link, self._evidence, clock, say)
        self._agent = Agent(_settings(options), seams, Spool(self._journal))

    def run(self, stopping: threading.Event) -> None:
        """Step until `stopping`, then spool what is folded and end the threads and the child."""
        while not stopping.is_set():
            self._wake.clear()
            delay = self._agent.step()
            self._wake.wait(delay)
        self._agent.close()
        self._gpus.close()
        self._evidence.close()
        self._link.close()
        self._log.close()
        self._journal.close()


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> argparse.Namespace:
    """Return the options; a wrong one ends the process with status 2 and a message that names it."""
    parser = argparse.ArgumentParser(prog="daytwo-agent", description="The daytwo agent of one node.", epilog=EPILOG)
    add = _Adder(parser, environ)
    add("node", _text, "this node's name, as its cluster knows it", default=socket.gethostname())
    add("gateway", _url, "where the gateway is: http://… or https://…")
    add("token-file", Path, "file with this node's token (`daytwo nodes token`)")
    add("ca-file", _file, "file with the certificates that vouch for the gateway; default: the system's", default=None)
    add("state-dir", Path, "folder for what must survive a restart", default=_state_dir(environ))
    add("kernel-log", _log_source, LOGS, default="auto")
    add(
        "expect-gpus",
        _count,
        "how many GPUs the node should have; default: learnt from the first reading",
        default=None,
    )
    add("pulse-seconds", _seconds, "longest time between two pulses, unless the gateway says another", default=60.0)
    add("gpu-poll-seconds", _seconds, "time between two readings of the GPUs", default=60.0)
    add("gpu-deadline-seconds", _seconds, "how long one reading of the GPUs may take", default=20.0)
    parser.add_argument(
        "--accept-user-records",
        action="store_true",
        default=environ.get(ACCEPT_USER_RECORDS) == "1",
        help=f"for tests: believe kernel records that a process wrote ({ACCEPT_USER_RECORDS}=1)",
    )
    parser.add_argument("--version", action="version", version=__version__)
    return parser.parse_args(arguments)


LOGS: Final = (
    "auto (kmsg where it can be read, else journal), kmsg, journal, journal:FOLDER, or file:PATH of kernel lines"
)
EPILOG: Final = f"Each option is also a variable: {PREFIX}NODE, {PREFIX}TOKEN_FILE and so on."


NEEDED: Final = object()
"""In the place of a default: there is none."""


class _Adder:
    """Adds options that may come from the environment, so that both are checked alike."""

    def __init__(self, parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
        self._parser, self._environ = parser, environ

    def __call__(self, name: str, read: Callable[[str], object], text: str, default: object = NEEDED) -> None:
        shown = text if default in (None, NEEDED) else f"{text} (default {default})"
        # argparse checks a default that is a string like an argument.
        value = self._environ.get(PREFIX + name.upper().replace("-", "_"), default)
        needed = value is NEEDED
        self._parser.add_argument(
            f"--{name}", type=read, help=shown, required=needed, default=None if needed else value
        )


def _state_dir(environ: Mapping[str, str]) -> Path:
    """systemd names the folder of its `StateDirectory=`."""
    return Path(environ.get("STATE_DIRECTORY") or "/var/lib/daytwo-agent")


def _wrong(found: str, allowed: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"found {found!r}; allowed is {allowed}")


def _text(value: str) -> str:
    if not value.strip() or "/" in value:
        raise _wrong(value, "a name without a slash")
    return value


def _url(value: str) -> str:
    try:
        url = urlsplit(value)
        good = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise _wrong(value, "a URL that starts with http:// or https://")
    return value


def _file(value: str) -> Path:
    if not Path(value).is_file():
        raise _wrong(value, "a file that exists")
    return Path(value)


def _log_source(value: str) -> str:
    kind, _, path = value.partition(":")
    if value not in ("auto", "kmsg", "journal") and (kind not in ("file", "journal") or not path.startswith("/")):
        raise _wrong(value, "auto, kmsg, journal, journal:/absolute/folder or file:/absolute/path")
    return value


def _count(value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) > 1024:
        raise _wrong(value, "a whole number from 0 to 1024")
    return int(value)


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3_600:
        raise _wrong(value, "a number of seconds from 0.1 to 3600")
    return seconds


def _kernel_log(source: str, clock: SystemClock, wake: Callable[[], None], boot: str) -> LogReader:
    kind, _, path = (_readable_source() if source == "auto" else source).partition(":")
    if kind == "journal":
        return JournalLog(boot_id=boot, clock=clock, wake=wake, folder=Path(path) if path else None)
    if kind == "kmsg":
        return KmsgLog(clock=clock, wake=wake, shared=BOOT_ID_FILE in os.environ)
    return FileLog(Path(path), clock=clock, wake=wake)


def _readable_source() -> str:
    """The kernel's own ring first: it tells what was lost. Where neither can be read, that is told of the ring."""
    return "journal" if not is_readable(KMSG) and shutil.which(JOURNALCTL) else "kmsg"


def _settings(options: argparse.Namespace) -> AgentSettings:
    return AgentSettings(
        node=options.node,
        # A machine that plays several nodes does not boot for one of them: a test gives that node's boot id in a file.
        boot_id=boot_id(Path(os.environ.get(BOOT_ID_FILE, BOOT_ID))),
        identity=dmi(),
        expected_gpus=options.expect_gpus,
        pulse_seconds=options.pulse_seconds,
        gpu_poll_seconds=options.gpu_poll_seconds,
        gpu_deadline_seconds=options.gpu_deadline_seconds,
        accept_user_records=options.accept_user_records,
    )


def say(line: str) -> None:
    """Write one line for the operator; the service manager adds the time."""
    sys.stderr.write(f"daytwo-agent: {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
