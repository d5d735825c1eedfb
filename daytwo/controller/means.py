"""What the parts of the reconciler work with. It makes one, and hands it to each of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from daytwo.adapters import Adapters
from daytwo.domain.seams import Notifier
from daytwo.intents import Guard
from daytwo.store.engine import Store


class Means(NamedTuple):
    """The store, the world, people and the clock. `guard` refuses every write of who has lost the lease."""

    store: Store
    adapters: Adapters
    notifier: Notifier
    guard: Guard
    now: Callable[[], datetime]
