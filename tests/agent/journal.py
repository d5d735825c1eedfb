"""A real systemd journal in a folder: entries in the journal's export format, written by systemd-journal-remote."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

WRITER = Path("/lib/systemd/systemd-journal-remote")
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

needs_journal = pytest.mark.skipif(
    not WRITER.exists() or shutil.which("journalctl") is None,
    reason="there is no journal to write and read: install the Debian package systemd-journal-remote",
)


@dataclass
class Journal:
    """One folder of journal files; each `write` is a file of its own, as a rotation makes them."""

    folder: Path
    written: int = 0

    def write(self, *messages: str, boot: str = BOOT, facility: int = 0, transport: str = "kernel") -> None:
        entries = b"".join(self._entry(each, boot.replace("-", ""), facility, transport) for each in messages)
        new = self.folder.parent / f"kernel-{self.written:04d}.journal"
        subprocess.run([WRITER, "-o", new, "-"], input=entries, check=True, capture_output=True)
        # Under its own name at once whole: who follows must not see half a file.
        new.rename(self.folder / new.name)

    def _entry(self, message: str, boot: str, facility: int, transport: str) -> bytes:
        self.written += 1
        text = message.encode()
        fields = {
            "__REALTIME_TIMESTAMP": 1_764_500_000_000_000 + self.written,
            "__MONOTONIC_TIMESTAMP": 1_000_000 + self.written,
            "_BOOT_ID": boot,
            "_TRANSPORT": transport,
            "_SOURCE_MONOTONIC_TIMESTAMP": 1_000_000 + self.written,
            "PRIORITY": 4,
            "SYSLOG_FACILITY": facility,
        }
        head = "".join(f"{name}={value}\n" for name, value in fields.items()).encode()
        return head + b"MESSAGE\n" + len(text).to_bytes(8, "little") + text + b"\n\n"
