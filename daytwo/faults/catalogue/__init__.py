"""The catalogue of faults: one data file a family in this folder, each entry with its source.

Everybody who judges a fault calls `catalogue()`; `docs/adding-a-fault.md` says how an entry is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from daytwo.faults.catalogue.entries import CatalogueError, read_family
from daytwo.faults.model import Fault

__all__ = [
    "DRAINED_BY_PERSON",
    "UNKNOWN_CODE",
    "Catalogue",
    "CatalogueError",
    "UnknownFault",
    "catalogue",
    "read_catalogue",
]

UNKNOWN_CODE: Final = "unknown-code"
DRAINED_BY_PERSON: Final = "slurm-drained-by-person"

_XID = re.compile(r"xid-(0|[1-9][0-9]{0,4})", re.ASCII)


class UnknownFault(LookupError):
    """No entry has this id, and it is not an Xid either."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All faults that daytwo knows, by id. Never changed once read."""

    _faults: Mapping[str, Fault]

    def get(self, fault_id: str) -> Fault:
        """Return the entry. An Xid without one gets `unknown-code` under its own id; else raises `UnknownFault`."""
        if fault_id in self._faults:
            return self._faults[fault_id]
        code = _XID.fullmatch(fault_id)
        if code is None:
            raise UnknownFault(f"fault: found {fault_id!r}, allowed: xid-<number>, {', '.join(self._faults)}")
        xid = int(code[1])
        return replace(self._faults[UNKNOWN_CODE], id=fault_id, xid=xid, title=f"Xid {xid}, not in the catalogue")

    def all(self) -> tuple[Fault, ...]:
        """Return every entry, family by family, in the order of the files."""
        return tuple(self._faults.values())


@cache
def catalogue() -> Catalogue:
    """Return the catalogue that is shipped. Raises `CatalogueError` if one of its files is malformed."""
    folder = files(__name__)
    return read_catalogue(
        (file.name, file.read_text(encoding="utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    )


def read_catalogue(named_texts: Iterable[tuple[str, str]]) -> Catalogue:
    """Return the catalogue in these (file name, TOML) pairs. Raises `CatalogueError`, which names what is wrong."""
    faults: dict[str, Fault] = {}
    for name, text in named_texts:
        for fault in read_family(name, text):
            if fault.id in faults:
                allowed = f"one entry, and {faults[fault.id].family}.toml has it"
                raise CatalogueError(name, fault.id, "id", fault.id, allowed)
            faults[fault.id] = fault
    for required in (UNKNOWN_CODE, DRAINED_BY_PERSON):
        if required not in faults:
            raise CatalogueError("catalogue", required, "id", None, "an entry, because others fall back to it")
    return Catalogue(MappingProxyType(faults))
