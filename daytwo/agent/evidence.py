"""What an act on the machine would lose, collected before it: kernel log, nvidia-smi, a bug report, the last readings.

Each program has a deadline and is killed with all its children; what cannot be had is named, and never holds up the
rest. The result is one archive of bounded size with what looks like a secret struck out.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

LARGEST_ARCHIVE: Final = 120 * 1024
"""In base64 it fits into a pulse, beside everything else that a pulse may hold."""
LARGEST_PART: Final = 1024 * 1024
BUG_REPORT: Final = "nvidia-bug-report.sh"

_SECRET: Final = re.compile(
    rb"(?i)((?:pass(?:word|wd|phrase)?|secret|token|credential|api[-_]?key|access[-_]?key|authorization)[\w-]{0,32}"
    rb"[\"']?\s{0,4}[=:]\s{0,4}[\"']?(?:bearer |basic )?)[^\s,;&\"']{1,512}"
)
_KNOWN: Final = re.compile(
    rb"\b(?:dtn_[\w-]{16,64}|AKIA[A-Z0-9]{16}|gh[pousr]_\w{20,255}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
)
_IN_URL: Final = re.compile(rb"(\w{2,16}://[^\s/:@]{0,128}:)[^\s/@]{1,256}(?=@)")
_KEY: Final = re.compile(
    rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,32}PRIVATE KEY-----|\Z)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the archive. `truncated`: its beginning was left out. `error` says why it is not there."""

    name: str
    data: bytes = b""
    truncated: bool = False
    error: str = ""

    def shorter(self) -> Part:
        """Half of it: the newest lines."""
        return replace(self, data=self.data[len(self.data) // 2 :], truncated=True)


Make = Callable[[float], bytes]
"""Makes the content of a part within so many seconds. Raises `OSError`, `subprocess.SubprocessError` or `Missing`."""


class Missing(Exception):
    """A part cannot be had; the text says why."""


class Evidence:
    """Implements the seam `Collector`. `source` is the kernel log that the agent reads; `wake` is called at the end."""

    def __init__(self, source: str, wake: Callable[[], None], *, path: str | None = None) -> None:
        self._source, self._wake, self._path = source, wake, path
        self._asked: SimpleQueue[tuple[float, dict[str, Any]] | None] = SimpleQueue()
        self._made: SimpleQueue[dict[str, object]] = SimpleQueue()
        threading.Thread(target=self._serve, name="evidence", daemon=True).start()

    def ask(self, seconds: float, readings: dict[str, Any]) -> None:
        """Start to collect; a result follows for certain, a little after `seconds` at the latest."""
        self._asked.put((seconds, readings))

    def collect(self) -> dict[str, object] | None:
        """Return a result, once."""
        return None if self._made.empty() else self._made.get()

    def close(self) -> None:
        """Let the thread end after what it is at."""
        self._asked.put(None)

    def _serve(self) -> None:
        while (asked := self._asked.get()) is not None:
            self._made.put(pack(gather(self._makers(asked[1]), asked[0])))
            self._wake()

    def _makers(self, readings: dict[str, Any]) -> list[tuple[str, Make]]:
        makers: list[tuple[str, Make]] = [
            ("readings.json", lambda _: json.dumps(readings, indent=1, default=str).encode()),
            ("kernel.log", lambda seconds: kernel_log(self._source, seconds, self._path)),
        ]
        if readings.get("quiesced"):
            return makers  # the vendor's programs would hold the GPUs again
        return [
            *makers,
            ("nvidia-smi.txt", lambda seconds: run(["nvidia-smi", "-q"], seconds, self._path)),
            ("nvidia-bug-report.log.gz", lambda seconds: bug_report(seconds, self._path)),
        ]


def gather(makers: Iterable[tuple[str, Make]], seconds: float) -> list[Part]:
    """Make the parts one after the other, until the time is over. Never raises."""
    ends_at, parts = time.monotonic() + seconds, []
    for name, make in makers:
        left = ends_at - time.monotonic()
        try:
            if left <= 0:
                raise Missing("no time was left for it")
            data = make(left)
            parts.append(Part(name, data if name.endswith(".gz") else redacted(data)))
        except (OSError, subprocess.SubprocessError, Missing) as error:
            parts.append(Part(name, error=str(error) or type(error).__name__))
    return [_limited(part) for part in parts]


def _limited(part: Part) -> Part:
    if part.name.endswith(".gz") and len(part.data) > LARGEST_ARCHIVE // 2:
        return Part(part.name, error=f"too large: {len(part.data)} bytes, allowed are {LARGEST_ARCHIVE // 2}")
    return replace(part, data=part.data[-LARGEST_PART:], truncated=len(part.data) > LARGEST_PART)


def pack(parts: list[Part]) -> dict[str, object]:
    """Return the archive and what is in it, as `daytwo.wire` has it; the longest text is cut until all of it fits."""
    archive = _archive(parts)
    while len(archive) > LARGEST_ARCHIVE:
        longest = max((part for part in parts if not part.name.endswith(".gz")), key=lambda part: len(part.data))
        parts = [part.shorter() if part is longest else part for part in parts]
        archive = _archive(parts)
    return {
        "archive": base64.b64encode(archive).decode(),
        "sha256": hashlib.sha256(archive).hexdigest(),
        "size": len(archive),
        "parts": [
            {"name": part.name, "bytes": len(part.data), "truncated": part.truncated, "error": part.error[:300]}
            for part in parts
        ],
    }


def _archive(parts: list[Part]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for part in parts:
            if not part.error:
                entry = tarfile.TarInfo(part.name)
                entry.size, entry.mode = len(part.data), 0o600
                archive.addfile(entry, io.BytesIO(part.data))
    return buffer.getvalue()


def redacted(data: bytes) -> bytes:
    """Strike out what looks like a secret: values after such names, tokens of known kinds, keys, passwords in URLs."""
    data = _KEY.sub(b"*** private key ***", data)
    data = _IN_URL.sub(rb"\1***", data)
    return _KNOWN.sub(b"***", _SECRET.sub(rb"\1***", data))


def kernel_log(source: str, seconds: float, path: str | None = None) -> bytes:
    """Return the newest of the kernel log that the agent reads (`LogStatus.source`)."""
    kind, _, where = source.partition(":")
    if kind == "file":
        with Path(where).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST_PART))
            return file.read(LARGEST_PART)
    if kind == "journal":
        folder = [f"--directory={where}"] if where else []
        newest = ["journalctl", "--no-pager", "--lines=5000", "--output=short-monotonic", *folder, "_TRANSPORT=kernel"]
        return run(newest, seconds, path)
    return run(["dmesg"], seconds, path)


def bug_report(seconds: float, path: str | None = None) -> bytes:
    """Let the vendor's program write its report, without touching a GPU that may hang (`--safe-mode`)."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        run([BUG_REPORT, "--safe-mode", "--output-file", str(report)], seconds, path)
        return report.with_name("report.gz").read_bytes()


def run(command: list[str], seconds: float, path: str | None = None) -> bytes:
    """Return what a program prints. It is killed with its children when the time is over. Raises `Missing`."""
    program = shutil.which(command[0], path=path)
    if program is None:
        raise Missing(f"{command[0]} is not installed")
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            [program, *command[1:]], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        status = _wait(child, seconds)
        output.seek(max(0, output.seek(0, os.SEEK_END) - LARGEST_PART))
        said = output.read()
    if status != 0:
        how = f"was killed after {seconds:.0f} s" if status is None else f"ended with status {status}"
        raise Missing(f"{command[0]} {how}: {redacted(said)[-200:].decode(errors='replace').strip()}".rstrip(": "))
    return said


def _wait(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit status; `None` where the time was over. One that sits in the kernel is left behind."""
    status = None
    with suppress(subprocess.TimeoutExpired):
        status = child.wait(seconds)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        child.wait(1.0)
    return status
