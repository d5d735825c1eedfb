"""One plane for all outages of real servers: each test takes a node that no other has touched."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.outages.living import StoppablePlane, a_stoppable_plane
from tests.postgres import Postgres


@pytest.fixture(scope="session")
async def plane(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StoppablePlane]:
    with postgres.database() as url:
        async with a_stoppable_plane(tmp_path_factory.mktemp("outages"), f"{url}&connect_timeout=2") as started:
            yield started
