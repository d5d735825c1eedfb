"""One page of a list: what every list of `daytwo.service.reads` returns."""

from __future__ import annotations

from typing import Generic, TypeVar

from daytwo.domain.vocabulary import Frozen

T = TypeVar("T")


class Page(Frozen, Generic[T]):
    """A bounded answer. `next` is the value of `after` for the following page, `None` at the end."""

    items: tuple[T, ...]
    next: str | None = None
