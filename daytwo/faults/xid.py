"""NVIDIA's Xid lines, in every form the driver has printed since 2013. `daytwo.faults.signals` calls `parse_xid`.

The form is that of `kernel_rc.c` in NVIDIA/open-gpu-kernel-modules (595.45.04), plus what older drivers printed:
no `PCI:`, `pid='<unknown>'`, a function after the address, no text at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# `match` and not `search`: health checks, device plugins and process names repeat whole Xid lines in their own texts.
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.(?P<function>[0-7]))?"
    r"(?: GPU-I:(?P<gpu_instance>[0-9]{1,4}))?(?: GPU-CI:(?P<compute_instance>[0-9]{1,4}))?\): "
    r"(?P<xid>[0-9]{1,5})(?![0-9])(?:,(?P<rest>.*))?\s*\Z",
    re.DOTALL,
)
_PID = re.compile(r"pid='?(?:(?P<pid>[0-9]{1,10})|<unknown>)'?(?:,\s?|\Z)")
_CAUSED_BY = re.compile(r" caused by previous Xid ([0-9]{1,5})\Z")
# The number decides: the words in parentheses change from driver to driver (open-gpu-kernel-modules #1353).
_RECOVERY = re.compile(
    r"GPU recovery action changed from 0x([0-9A-Fa-f]{1,8})(?: \([^()]{0,64}\))? to 0x([0-9A-Fa-f]{1,8})(?![0-9A-Fa-f])"
)


@dataclass(frozen=True, slots=True)
class XidLine:
    """What one Xid line says. `pci` is lower case, without the function; `None` means that the line does not tell.

    `caused_by` is the earlier Xid that this one follows from; `recovery` is (from, to) of an Xid 154.
    """

    xid: int
    pci: str
    function: int | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    pid: int | None = None
    process: str | None = None
    message: str = ""
    caused_by: int | None = None
    recovery: tuple[int, int] | None = None


def parse_xid(text: str) -> XidLine | None:
    """Return what an Xid line says, or `None` for any other text. `text` is `KernelRecord.text`. Never raises."""
    match = _XID.match(text)
    if match is None:
        return None
    pid, process, message = _owner((match["rest"] or "").strip())
    caused_by = _CAUSED_BY.search(message)
    return XidLine(
        xid=int(match["xid"]),
        pci=match["pci"].lower(),
        function=_optional(match["function"]),
        gpu_instance=_optional(match["gpu_instance"]),
        compute_instance=_optional(match["compute_instance"]),
        pid=pid,
        process=process,
        message=message,
        caused_by=int(caused_by[1]) if caused_by else None,
        recovery=_recovery(message) if match["xid"] == "154" else None,
    )


def _owner(rest: str) -> tuple[int | None, str | None, str]:
    """Split `pid=…, name=…, message`; both, or only the name, may be missing."""
    match = _PID.match(rest)
    if match is None:
        return None, None, rest
    rest = rest[match.end() :]
    if not rest.startswith("name="):
        return _optional(match["pid"]), None, rest
    name, _, message = rest.removeprefix("name=").partition(", ")
    name = name.rstrip(",")
    return _optional(match["pid"]), None if name in ("", "<unknown>") else name, message


def _recovery(message: str) -> tuple[int, int] | None:
    match = _RECOVERY.search(message)
    return (int(match[1], 16), int(match[2], 16)) if match else None


def _optional(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
