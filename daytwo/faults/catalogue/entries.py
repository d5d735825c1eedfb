"""From one data file of the catalogue to `Fault` values. Called by `daytwo.faults.catalogue` only."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from daytwo.faults.model import FLOOR, Action, Clears, Fault, FaultClass, Mode, Severity, VerifyTest

Field = Callable[[Any], Any]


class CatalogueError(ValueError):
    """A data file breaks a rule. The message names file, entry, field, what was found and what is allowed."""

    def __init__(self, file: str, entry: str, name: str, found: object, allowed: str) -> None:
        shown = "nothing" if found is None else repr(found)
        super().__init__(f"{file}: entry {entry}: field {name}: found {shown}, allowed: {allowed}")


class _Wrong(Exception):
    """The value of a field is not allowed; the text says what is."""


def _one_of(words: type[StrEnum]) -> Field:
    def read(value: Any) -> str:
        if value not in list(words):
            raise _Wrong(", ".join(words))
        # Plain text for the tests: their names are open, a site adds its own.
        return str(value) if words is VerifyTest else words(value)

    return read


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong("a text that is not empty")
    return " ".join(value.split())


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true, false")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise _Wrong("a number of seconds, 0 or more")
    return float(value)


def _list_of(item: Field) -> Field:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _Wrong("a list")
        return tuple(item(each) for each in value)

    return read


FIELDS: Final[Mapping[str, Field]] = {
    "title": _text,
    "class": _one_of(FaultClass),
    "severity": _one_of(Severity),
    "mode": _one_of(Mode),
    "clears": _one_of(Clears),
    "meaning": _text,
    "source": _text,
    "first_action": _one_of(Action),
    "new_work_fails": _yes_or_no,
    "quiet_for_seconds": _seconds,
    "debounce_seconds": _seconds,
    "verify": _list_of(_one_of(VerifyTest)),
    "notes": _text,
}
REQUIRED: Final = ("title", "class", "severity", "mode", "clears", "meaning", "source")
NOT_BY_DEFAULT: Final = ("title", "meaning", "source")
"""Fields that are about one entry only: a file's `[defaults]` may not hold them."""

_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)
_XID = re.compile(r"xid-(0|[1-9][0-9]{0,4})", re.ASCII)


def read_family(file: str, text: str) -> tuple[Fault, ...]:
    """Return the faults in one data file, in its order. `file` is `<family>.toml`. Raises `CatalogueError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(file, "-", "-", str(error), "TOML") from error
    for name in sorted(data.keys() - {"ids", "defaults", "faults"}):
        raise CatalogueError(file, "-", name, data[name], "ids, defaults, faults")
    ids = _values(file, "-", {"ids": _list_of(_text)}, {"ids": data.get("ids")})["ids"]
    defaults = {name: field for name, field in FIELDS.items() if name not in NOT_BY_DEFAULT}
    common = _values(file, "[defaults]", defaults, _table(file, "defaults", data.get("defaults", {})))
    entries = _table(file, "faults", data.get("faults"))
    return tuple(
        _fault(file, entry, ids, common | _values(file, entry, FIELDS, _table(file, entry, values)))
        for entry, values in entries.items()
    )


def _table(file: str, entry: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise CatalogueError(file, entry, "-", found, "a table")
    return found


def _values(file: str, entry: str, fields: Mapping[str, Field], table: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    for name, found in table.items():
        if name not in fields:
            raise CatalogueError(file, entry, name, found, f"one of the fields {', '.join(fields)}")
        try:
            values[name] = fields[name](found)
        except _Wrong as wrong:
            raise CatalogueError(file, entry, name, found, str(wrong)) from None
    return values


def _fault(file: str, entry: str, ids: tuple[str, ...], values: dict[str, Any]) -> Fault:
    _check(file, entry, ids, values)
    code = _XID.fullmatch(entry)
    extra = tuple(test for test in values.pop("verify", ()) if test not in FLOOR)
    return Fault(
        id=entry,
        fault_class=values.pop("class"),
        verify=(*(str(test) for test in FLOOR), *extra),
        xid=int(code[1]) if code else None,
        family=file.removesuffix(".toml"),
        **values,
    )


def _check(file: str, entry: str, ids: tuple[str, ...], values: Mapping[str, Any]) -> None:
    if not _ID.fullmatch(entry) or (entry.startswith("xid-") and not _XID.fullmatch(entry)):
        raise CatalogueError(file, entry, "id", entry, "lower-case words joined by '-'; xid-<number> for an Xid")
    if not entry.startswith(ids):
        raise CatalogueError(file, entry, "id", entry, f"an id that begins with {', '.join(ids)} (`ids` of the file)")
    for name in REQUIRED:
        if name not in values:
            raise CatalogueError(file, entry, name, None, "a value: the field is required")
    quiet = values["clears"] is Clears.QUIET_FOR
    if quiet != ("quiet_for_seconds" in values):
        allowed = "a number of seconds, because clears is quiet-for" if quiet else "nothing, unless clears is quiet-for"
        raise CatalogueError(file, entry, "quiet_for_seconds", values.get("quiet_for_seconds"), allowed)
