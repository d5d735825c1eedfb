"""How every list is filtered, bounded and continued."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from daytwo.domain.errors import BadInput
from daytwo.service.models.paging import Page

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")
MOST = 1000


@dataclass(frozen=True, slots=True)
class Filter:
    """What of a list is wanted. `node` is `node` or `cluster/node`; `after` is the `next` of the page before."""

    cluster: str | None = None
    node: str | None = None
    states: tuple[str, ...] = ()
    fault: str | None = None
    subject: str | None = None
    active_only: bool = False
    """Open repairs, firing findings, freezes that hold; else the ended ones too."""
    limit: int = 100
    after: str | None = None


def page(rows: Sequence[R], limit: int, *, view: Callable[[R], M], key: Callable[[R], str]) -> Page[M]:
    """Make a page of `rows`, which were asked for with `limit + 1` to see whether there are more."""
    shown = rows[:limit]
    return Page(items=tuple(view(row) for row in shown), next=key(shown[-1]) if len(rows) > limit else None)


def view(model: type[M], row: object, **more: object) -> M:
    """Return `model` filled from the attributes of a row; `more` adds what the row does not have."""
    names = [name for name in model.model_fields if name not in more]
    return model.model_validate({name: getattr(row, name) for name in names} | more)


def row_number(after: str) -> int:
    """Read an `after` that is a number. Raises `BadInput`."""
    if not after.isdecimal():
        raise BadInput(f"after: found {after!r}; allowed is the `next` of the page before, a number")
    return int(after)
