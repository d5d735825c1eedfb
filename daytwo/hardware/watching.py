"""How a driver lets it be noted whether its way to a node's hardware answers. `daytwo.adapters` says by what."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

Watching = Callable[[str], AbstractAsyncContextManager[object]]
"""Given a node, notes whether what is asked in the block is answered (`daytwo.outages`)."""


def unwatched(_node: str) -> AbstractAsyncContextManager[object]:
    """Note nothing."""
    return nullcontext()
