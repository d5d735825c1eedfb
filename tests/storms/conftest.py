"""Storms that several tests look at: each is made once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.storms.rig import Rig, a_rig

NODES = 200
LEFT = ("node-007", "node-151")
"""Nodes of two racks that are still broken when the storm is over."""


@dataclass(frozen=True)
class Storm:
    """What was so while nearly all nodes were broken, and when it was over."""

    rig: Rig
    during: dict[str, Any]
    after: dict[str, Any]


def _look(rig: Rig) -> dict[str, Any]:
    return {
        "notices": rig.notices(),
        "marks": rig.marks(),
        "started": list(rig.temporal.nodes),
        "incidents": rig.incidents(),
    }


@pytest.fixture(scope="session")
async def storm(migrated_file: Path) -> AsyncIterator[Storm]:
    """Two hundred nodes break in one second; all but two mend."""
    async with a_rig(migrated_file, nodes=NODES) as rig:
        rig.broken(rig.names)
        await rig.steps(0.5, 2, 2)
        during = _look(rig)
        rig.well(name for name in rig.names if name not in LEFT)
        await rig.steps(1, 10, 10, 60, 60)
        yield Storm(rig, during, _look(rig))


@pytest.fixture
async def rig(migrated_file: Path) -> AsyncIterator[Rig]:
    """A small fleet in which nothing has happened yet."""
    async with a_rig(migrated_file, nodes=12) as small:
        yield small
