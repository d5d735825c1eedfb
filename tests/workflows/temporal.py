"""A real Temporal development server for tests and for `scripts.record_histories`."""

from __future__ import annotations

import contextlib
import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from daytwo.temporal import register_search_attributes

TEMPORAL: Final = Path(sysconfig.get_path("scripts")) / "temporal"
FAST: Final = [
    arg
    for setting in (
        "history.transferProcessorMaxPollRPS=2000",
        "history.timerProcessorMaxPollRPS=2000",
        'history.timerProcessorMaxTimeShift="1ms"',
        "history.visibilityProcessorMaxPollRPS=2000",
        "matching.numTaskqueueReadPartitions=1",
        "matching.numTaskqueueWritePartitions=1",
        "system.forceSearchAttributesCacheRefreshOnRead=true",
    )
    for arg in ("--dynamic-config-value", setting)
]


@contextlib.asynccontextmanager
async def a_temporal() -> AsyncIterator[Client]:
    """A client of a server in memory, with our search attributes; the server ends with the block."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(TEMPORAL),
        data_converter=pydantic_data_converter,
        dev_server_log_level="error",
        dev_server_extra_args=FAST,
        ui=False,
    ) as env:
        await register_search_attributes(env.client)
        yield env.client
