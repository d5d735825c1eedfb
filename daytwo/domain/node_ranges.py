"""Node names and ranges of them, as Slurm writes host lists: `gpu-[001-016,020]`, `r[1-2]n[01-18]`, `a,b`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Final

MAX_NAMES: Final = 20_000
"""More names than this in one definition are a slip of the keyboard (design 11: 10,000 nodes in one plane)."""

FORM: Final = "names and ranges such as gpu-07, gpu-[001-016,020] or r[1-2]n[01-18]"

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)
_PIECE = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]|([^\[\],]+)")
_SPAN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)


class RangeError(ValueError):
    """A range that cannot be read. The message says what was found and what is allowed."""


def expand_nodes(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the names that these names and ranges stand for, in order. Raises `RangeError`."""
    return _expand(tuple(patterns))


@lru_cache(maxsize=256)
def _expand(patterns: tuple[str, ...]) -> tuple[str, ...]:
    parts: list[list[Sequence[str]]] = []
    count = 0
    for pattern in (pattern for whole in patterns for pattern in _split(whole)):
        parts.append(_parts(pattern))
        count += prod(len(choices) for choices in parts[-1])
        if count > MAX_NAMES:
            raise RangeError(f"found {count} names or more, allowed: at most {MAX_NAMES}")
    names = tuple("".join(chosen) for part in parts for chosen in product(*part))
    for name in names:
        if not _NAME.fullmatch(name):
            raise RangeError(f"found {name[:80]!r}, allowed: letters, digits, '-', '.', '_', at most 253; {FORM}")
    return names


def _split(whole: str) -> Iterator[str]:
    """The patterns between the commas that stand outside of brackets."""
    start, inside = 0, False
    for place, char in enumerate(whole):
        if char == "," and not inside:
            yield whole[start:place]
            start = place + 1
        elif char in "[]":
            inside = char == "["
    yield whole[start:]


def _parts(pattern: str) -> list[Sequence[str]]:
    """The choices for each piece of a pattern: one for plain text, many for a range."""
    parts: list[Sequence[str]] = []
    position = 0
    while position < len(pattern):
        piece = _PIECE.match(pattern, position)
        if piece is None or piece.end() == position:
            raise RangeError(f"found {pattern[:80]!r}, allowed: {FORM}")
        parts += [(piece[3],)] if piece[3] is not None else [(piece[1],), _numbers(pattern, piece[2])]
        position = piece.end()
    if not parts:
        raise RangeError(f"found an empty name, allowed: {FORM}")
    return parts


def _numbers(pattern: str, inside: str) -> list[str]:
    numbers: list[str] = []
    for text in inside.split(","):
        span = _SPAN.fullmatch(text.strip())
        if span is None:
            raise RangeError(f"found {text[:40]!r} in {pattern[:80]!r}, allowed: a number or from-to, such as 001-016")
        numbers += _between(pattern, span[1], span[2] or span[1])
        if len(numbers) > MAX_NAMES:
            raise RangeError(f"found {len(numbers)} names or more, allowed: at most {MAX_NAMES}")
    return numbers


def _between(pattern: str, low: str, high: str) -> list[str]:
    """Leading zeros of the first number set the width, as in Slurm."""
    if int(high) < int(low):
        raise RangeError(f"found {low}-{high} in {pattern[:80]!r}, allowed: a range that does not run backwards")
    if int(high) - int(low) >= MAX_NAMES:
        raise RangeError(f"found {low}-{high} in {pattern[:80]!r}, allowed: at most {MAX_NAMES} names")
    return [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
