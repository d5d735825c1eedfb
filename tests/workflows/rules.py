"""Another policy for a while: the cluster of the plane is declared again, and as it was afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from daytwo.domain.definition import ClusterDefinition
from daytwo.intake import declare
from daytwo.lab.definition import CLUSTER
from daytwo.store.tables import ClusterRow
from tests.workflows.plane import Plane


@contextlib.asynccontextmanager
async def other_rules(plane: Plane, **policy: Any) -> AsyncIterator[None]:
    """Have these parts of the policy be different until the block ends."""
    with plane.store.read() as session:
        usual = ClusterDefinition.model_validate(session.get_one(ClusterRow, CLUSTER).definition)
    other = usual.model_copy(update={"policy": usual.policy.model_copy(update=policy)})
    await asyncio.to_thread(declare, plane.store, other, now=datetime.now(UTC))
    try:
        yield
    finally:
        await asyncio.to_thread(declare, plane.store, usual, now=datetime.now(UTC))
