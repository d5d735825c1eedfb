"""What every test may use: a store on each database that is to be supported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.store.engine import Store


@pytest.fixture(params=["sqlite"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, one run of the test for each kind."""
    return {"sqlite": f"sqlite:///{tmp_path}/daytwo.db"}[request.param]


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store with all tables."""
    opened = Store(store_url)
    opened.migrate()
    yield opened
    opened.close()
