"""Where the spool keeps its lines: a file of JSON lines that survives `kill -9` and a full disk, or the memory."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Locked(Exception):
    """Another agent uses this state directory."""


class MemoryJournal:
    """A journal for simulated nodes: it lives as long as the node's disk, not as its agent."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def load(self) -> list[Entry]:
        """Return all entries."""
        return list(self._entries)

    def append(self, entries: Sequence[Entry], *, durable: bool) -> None:
        """Add entries; nothing is durable."""
        self._entries.extend(entries)

    def rewrite(self, entries: Sequence[Entry]) -> None:
        """Put these in the place of all entries."""
        self._entries = list(entries)


class DiskJournal:
    """An append-only file. Raises `Locked` if another process has it; writing raises `OSError`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._path = folder / "spool.jsonl"
        self._lock = _locked(folder / "lock")
        self._file = self._open()

    def load(self) -> list[Entry]:
        """Return all entries."""
        return read_entries(self._path)

    def append(self, entries: Sequence[Entry], *, durable: bool) -> None:
        """Add entries. A write that fails half-way leaves a torn line, which `load` skips."""
        _write(self._file, _lines(entries))
        if durable:
            os.fdatasync(self._file)

    def rewrite(self, entries: Sequence[Entry]) -> None:
        """Put these in the place of all entries: a new file, renamed over the old one."""
        new = self._path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(_lines(entries))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
        os.close(self._file)
        self._file = self._open()
        self._sync_folder()

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._file)
        os.close(self._lock)

    def _open(self) -> int:
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            _write(file, b"\n")
        return file

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_entries(path: Path) -> list[Entry]:
    """Return the entries in a spool's file. The line that a crash tore, or a damaged one, is left out."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                entries.append(entry)
    return entries


def _lines(entries: Sequence[Entry]) -> bytes:
    return b"".join(json.dumps(entry, separators=(",", ":")).encode() + b"\n" for entry in entries)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _locked(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise Locked(f"{path.parent} is used by another agent") from None
    return file
