"""Values that nobody meant: any JSON, good documents with something wrong in them, good lines with wrong bytes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

HOSTILE = (
    "\x00",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egpj.exe",
    "\ud800",
    "[x](javascript:alert(1))",
    "<script>alert(1)</script>",
    "a\nb\r\nc",
    "𝕏" * 300,
)
TEXT = st.text(max_size=20) | st.sampled_from(HOSTILE)
NUMBERS = st.integers() | st.floats() | st.sampled_from((2**31, 2**63, 10**40, -1, 1e308, float("nan"), float("inf")))
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)


@st.composite
def damaged(draw: st.DrawFn, document: Any) -> Any:
    """`document` with up to three of its parts taken out or put in the place of something else."""
    broken = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from(list(_paths(broken))))
        broken = _with(broken, place, draw(JSON)) if draw(st.booleans()) else _without(broken, place)
    return broken


@st.composite
def garbled(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """One of the samples with pieces of it overwritten, cut out or repeated; or any bytes at all."""
    raw = bytearray(draw(st.sampled_from(samples) | st.binary(max_size=200)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(len(raw), start + 40)))
        raw[start:end] = draw(st.binary(max_size=12) | st.just(bytes(raw[start:end]) * 2))
    return bytes(raw)


def _paths(document: Any, above: Path = ()) -> Iterator[Path]:
    yield above
    parts = document.items() if isinstance(document, dict) else enumerate(document) if _is_list(document) else ()
    for name, part in parts:
        yield from _paths(part, (*above, name))


def _is_list(document: Any) -> bool:
    return isinstance(document, list)


def _holder(document: Any, place: Path) -> Any:
    for part in place[:-1]:
        document = document[part]
    return document


def _with(document: Any, place: Path, value: Any) -> Any:
    if not place:
        return value
    _holder(document, place)[place[-1]] = value
    return document


def _without(document: Any, place: Path) -> Any:
    if place:
        del _holder(document, place)[place[-1]]
    return document
