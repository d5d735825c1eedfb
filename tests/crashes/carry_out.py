"""A process that carries one act out on a simulated fleet, as often as it is told `not yet`.

`python -m tests.crashes.carry_out STORE_URL LAB_SOCKET ACT_JSON`
"""

from __future__ import annotations

import asyncio
import sys

from daytwo.domain.errors import TryAgain
from daytwo.domain.seams import Act
from daytwo.hardware.simulated import SimulatedHardware
from daytwo.intents import Ledger
from daytwo.store.engine import Store

KEY = "the-reboot"


async def carry_out(url: str, socket: str, order: str) -> None:
    """Return when the act is proven."""
    ledger = Ledger(Store(url), {"hardware": SimulatedHardware(socket, "sim")})
    while True:
        try:
            await ledger.carry_out(KEY, "hardware", Act.model_validate_json(order))
            return
        except TryAgain:
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(carry_out(*sys.argv[1:]))
