"""One kernel message out of whatever a kernel log, a syslog or a journal wraps around it.

The agent calls `parse_line` for each record of /dev/kmsg or line of a log file; `daytwo.faults.signals` reads the text.

Hazard: jobs choose process and file names, and the kernel prints both. So a prefix is only taken off at the start of
a line, the tag must be `kernel`, and nothing here looks for a fault in the middle of a text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

MAX_LINE: Final = 64 * 1024
"""Longer lines are damaged: the kernel's own limit for an extended record is 8 KiB."""

LEVELS: Final = {
    "emerg": 0, "alert": 1, "crit": 2, "err": 3, "error": 3,
    "warn": 4, "warning": 4, "notice": 5, "info": 6, "debug": 7,
}  # fmt: skip
FACILITIES: Final = {
    "kern": 0, "user": 1, "mail": 2, "daemon": 3, "auth": 4, "syslog": 5,
    "lpr": 6, "news": 7, "uucp": 8, "cron": 9, "authpriv": 10, "ftp": 11,
}  # fmt: skip

_FACILITY = "(?P<facility>" + "|".join(FACILITIES) + ")"
_LEVEL = "(?P<level>" + "|".join(LEVELS) + ")"
_PRIORITY = r"<(?P<priority>[0-9]{1,4})>"
_SECONDS = r"\[ {0,12}(?P<seconds>[0-9]{1,12})\.(?P<fraction>[0-9]{1,9})\]"
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[0-9.,:Z+-]{0,24}"
_SYSLOG_TIME = r"[A-Z][a-z]{2} [ 0-9]?[0-9] [0-9:]{8}"
_HOST = r"[^\s]{1,255}"

# Every quantifier is bounded and every pattern is anchored, so that no line costs more than its length.
_OUTER: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_PRIORITY}1 {_ISO} {_HOST} kernel [^\s]{{1,128}} [^\s]{{1,128}} (?:-|(?:\[[^\]]{{0,512}}\]){{1,8}}) ?",
        rf"(?:{_PRIORITY})?{_SYSLOG_TIME} {_HOST} kernel: ?",
        rf"{_ISO} (?:[A-Z][a-z]{{1,2}}\([0-9]{{1,5}}\) vmkernel: )?cpu[0-9]{{1,5}}:[0-9]{{1,12}}\)",
        rf"{_ISO} {_HOST} kernel: ?",
        rf"{_SECONDS} {_HOST} kernel: ?",
        rf"{_HOST}: {_FACILITY}: {_LEVEL}: \[{_ISO}\]: ?",
        rf"{_FACILITY} {{0,8}}:{_LEVEL} {{0,8}}: ?",
        r"kernel: ?",
        _PRIORITY,
    )
)
_INNER: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_SECONDS} ?",
        r"\[ {0,8}[TC][0-9]{1,10}\] ?",
        rf"\[[A-Z][a-z]{{2}} {_SYSLOG_TIME} [0-9]{{4}}\] ?",
        rf"{_ISO} ",
        r"\[\.\.\.\] ?",
    )
)
_KMSG = re.compile(r"([0-9]{1,4}),([0-9]{1,20}),([0-9]{1,20})(?:,[-c+](?:,[^;,\n]{0,64}){0,8})?;")
_LOOKS_LIKE_KMSG = re.compile(r"[0-9]{1,4},[0-9]{1,20}(?:,|$)")
_DICTIONARY = re.compile(r" ?[A-Z_]{1,32}=")
_REPEATED = re.compile(r"message repeated ([0-9]{1,9}) times: \[ ?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One kernel message without what was wrapped around it. `None` means that the form does not tell.

    `monotonic_us` is microseconds since boot. `repeated` is how often the message stood for itself. An empty `text` is
    a blank line, or a line that only adds `KEY=value` to the record before it: nothing was lost.
    """

    text: str
    facility: int | None = None
    level: int | None = None
    sequence: int | None = None
    monotonic_us: int | None = None
    repeated: int = 1

    @property
    def from_user_space(self) -> bool:
        """True if a process wrote it into the kernel log: the kernel never leaves such a record facility 0."""
        return self.facility not in (None, 0)


def parse_line(raw: bytes | str) -> KernelRecord | None:
    """Return the message in a line or a kmsg record; `None` if it is cut short, binary or too long. Never raises."""
    line = _readable(raw)
    if line is None:
        return None
    if not line.strip() or (line.startswith(" ") and _DICTIONARY.match(line)):
        return KernelRecord("")
    if line.startswith('{"'):
        return _from_journal(line)
    if _LOOKS_LIKE_KMSG.match(line):
        return _from_kmsg(line)
    return _from_text(line)


def _readable(raw: bytes | str) -> str | None:
    if len(raw) > MAX_LINE:
        return None
    try:
        line = raw.decode() if isinstance(raw, bytes) else raw
    except UnicodeDecodeError:
        return None
    line = line.rstrip("\r\n")
    return None if _CONTROL.search(line) else line


def _from_kmsg(line: str) -> KernelRecord | None:
    header = _KMSG.match(line)
    if header is None:
        return None
    priority, sequence, monotonic_us = (int(number) for number in header.groups())
    first, *others = line[header.end() :].split("\n")
    body = "\n".join([first, *(other for other in others if not _DICTIONARY.match(other))])
    return KernelRecord(
        _without_dictionary(_unescaped(body)), priority >> 3, priority & 7, sequence, monotonic_us=monotonic_us
    )


def _from_journal(line: str) -> KernelRecord | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = _journal_text(entry.get("MESSAGE"))
    if text is None:
        return None
    facility = _number(entry.get("SYSLOG_FACILITY"))
    if facility is None and "_TRANSPORT" in entry:
        facility = FACILITIES["kern"] if entry["_TRANSPORT"] == "kernel" else FACILITIES["user"]
    return KernelRecord(
        text,
        facility,
        _number(entry.get("PRIORITY")),
        monotonic_us=_number(entry.get("_SOURCE_MONOTONIC_TIMESTAMP")),
    )


def _journal_text(message: Any) -> str | None:
    """The journal writes a text that is not UTF-8 as a list of bytes, and one that is too long as null."""
    if isinstance(message, list):
        if not all(type(byte) is int and 0 <= byte < 256 for byte in message):
            return None
        message = bytes(message).decode(errors="backslashreplace")
    return _clean(message) if isinstance(message, str) else None


def _from_text(line: str) -> KernelRecord:
    found, rest = _take_prefixes(line)
    repeated, rest = _take_repeats(rest)
    facility, level = FACILITIES.get(found.get("facility", "")), LEVELS.get(found.get("level", ""))
    priority = _number(found.get("priority"))
    if priority is not None:
        facility, level = priority >> 3, priority & 7
    text = _without_dictionary(_unescaped(rest))
    return KernelRecord(text, facility, level, monotonic_us=_microseconds(found), repeated=repeated)


def _take_prefixes(line: str) -> tuple[dict[str, str], str]:
    found: dict[str, str] = {}
    position = 0
    for patterns in (_OUTER, _INNER, _INNER):
        match = next((match for pattern in patterns if (match := pattern.match(line, position))), None)
        if match is not None:
            found |= {name: value for name, value in match.groupdict().items() if value is not None}
            position = match.end()
    return found, line[position:]


def _take_repeats(text: str) -> tuple[int, str]:
    match = _REPEATED.match(text)
    if match is None:
        return 1, text
    return max(1, int(match[1])), text[match.end() :].removesuffix("]").rstrip()


def _microseconds(found: dict[str, str]) -> int | None:
    if "seconds" not in found:
        return None
    return int(found["seconds"]) * 1_000_000 + int(found["fraction"][:6].ljust(6, "0"))


def _unescaped(text: str) -> str:
    r"""Undo the kernel's `\x0a` for bytes that are safe to show; a hidden NUL or escape stays spelled out."""
    raw = text.encode("utf-8", "backslashreplace")
    return _clean(_ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), raw).decode(errors="backslashreplace"))


def _clean(text: str) -> str:
    # A lone surrogate cannot be sent or stored, nor can a NUL in PostgreSQL.
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", encodable)


def _without_dictionary(text: str) -> str:
    lines = text.split("\n")
    while len(lines) > 1 and _DICTIONARY.match(lines[-1]):
        lines.pop()
    return "\n".join(lines).strip()


def _number(value: object) -> int | None:
    text = str(value) if isinstance(value, int) else value
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 20:
        return None
    return int(text)
