"""What Temporal knows of repairs, for the one time at which it must be listed: after the store was restored.

Used by `daytwo.controller.settling`. What a workflow says of itself is asked of a control worker, which must be up.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from daytwo.domain.errors import Unreachable
from daytwo.domain.exchange import Run
from workflows import names

CALL: Final = timedelta(seconds=10)
AT_ONCE: Final = 8
SLACK: Final = timedelta(minutes=5)
"""Two machines' clocks may differ by less than this."""


@dataclass(frozen=True, slots=True)
class Known:
    """One repair as Temporal knows it. `running`: its workflow goes on; `completed`: it ended by itself."""

    run: Run
    run_id: str
    running: bool
    completed: bool


class TemporalRuns:
    """Lists repairs. Every call raises `Unreachable` where Temporal or a worker does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def since(self, moment: datetime) -> list[Known]:
        """All repairs that run, and those that have ended since `moment`, the newest last."""
        ended = f"CloseTime > '{(moment - SLACK).isoformat()}' AND ExecutionStatus != 'ContinuedAsNew'"
        query = f"WorkflowType = '{names.NODE_REPAIR}' AND (ExecutionStatus = 'Running' OR ({ended}))"
        try:
            found = [each async for each in self._client.list_workflows(query, rpc_timeout=CALL)]
        except RPCError as error:
            raise Unreachable(f"Temporal does not list workflows: {error.message}") from error
        hands = asyncio.Semaphore(AT_ONCE)
        return list(await asyncio.gather(*(self._known(each, hands) for each in sorted(found, key=_began))))

    async def terminate(self, known: Known, why: str) -> None:
        """End this very workflow, if it runs; another one on the node may belong to another repair."""
        workflow_id = names.workflow_id(known.run.cluster, known.run.node)
        handle = self._client.get_workflow_handle(workflow_id, run_id=known.run_id)
        try:
            await handle.terminate(reason=why, rpc_timeout=CALL)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise Unreachable(f"Temporal does not end workflows: {error.message}") from error

    async def _known(self, found: WorkflowExecution, hands: asyncio.Semaphore) -> Known:
        handle = self._client.get_workflow_handle(found.id, run_id=found.run_id, result_type=Run)
        async with hands:
            run = await self._ask(handle)
        completed = found.status is WorkflowExecutionStatus.COMPLETED
        return Known(run, found.run_id, running=found.status is WorkflowExecutionStatus.RUNNING, completed=completed)

    async def _ask(self, handle: WorkflowHandle[object, Run]) -> Run:
        try:
            run: Run = await handle.query(names.STATE_QUERY, result_type=Run, rpc_timeout=CALL)
        except (RPCError, WorkflowQueryFailedError) as error:
            raise Unreachable(f"{handle.id} does not say how it stands: {error}; is a control worker up?") from error
        return run


def _began(found: WorkflowExecution) -> datetime:
    return found.start_time
