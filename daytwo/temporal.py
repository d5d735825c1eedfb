"""How the plane speaks to Temporal: connect, register search attributes, start a repair, tell it something.

Used by the control worker, the controller and the service. Address, namespace, TLS and keys come from
`temporalio.envconfig` (`TEMPORAL_*`, `temporal.toml`), so that a production cluster is configuration only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from sqlmodel import col, select
from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from daytwo.backoff import Backoff, Gate
from daytwo.domain.errors import BadInput, NotFound, Unreachable
from daytwo.domain.exchange import Run
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, RepairRow
from workflows import names

RPC: Final = timedelta(seconds=10)
"""A call that takes longer is given up and made again by the reconciler: rows are the truth, not calls."""

TO_A_WORKER: Final = timedelta(seconds=5)
"""For a call that Temporal hands on: without a worker nobody takes it, and others wait to be told too."""
CONNECT_SECONDS: Final = 10.0
PATIENCE: Final = RPC.total_seconds() + 2
"""For a call that must connect first."""

R = TypeVar("R")

DEFAULT_ADDRESS: Final = "localhost:7233"
"""Where Temporal is when nothing says otherwise, as for its own command line."""

TYPES: Final = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Int": IndexedValueType.INDEXED_VALUE_TYPE_INT,
}


async def connect(*, lazy: bool = False) -> Client:
    """Connect as the environment says. Raises `Unreachable` naming the address.

    A lazy client connects at its first call, and again until that has worked; a worker cannot use one.
    """
    config = ClientConfig.load_client_connect_config()
    address = config.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await Client.connect(**config, data_converter=pydantic_data_converter, lazy=lazy)
    except (RuntimeError, TimeoutError) as error:
        why = str(error) or f"nothing within {CONNECT_SECONDS:.0f} s"
        raise Unreachable(f"Temporal at {address} does not answer: {why}; see TEMPORAL_ADDRESS") from error


async def register_search_attributes(client: Client) -> tuple[str, ...]:
    """Add what is missing, on any server; returns the names that were added.

    Raises `BadInput` for a wrong type, and `Unreachable`.
    """
    try:
        return await _register(client)
    except RPCError as error:
        raise Unreachable(f"Temporal does not tell its search attributes: {error.message}") from error


async def _register(client: Client) -> tuple[str, ...]:
    asked = ListSearchAttributesRequest(namespace=client.namespace)
    listing = client.operator_service.list_search_attributes(asked, timeout=RPC)
    found = (await listing).custom_attributes
    wanted = {key.name: TYPES[key.indexed_value_type_name] for key in _attributes()}
    wrong = sorted(name for name, kind in wanted.items() if name in found and found[name] != kind)
    if wrong:
        raise BadInput(
            f"search attribute {wrong[0]} exists in namespace {client.namespace} with another type; remove it first"
        )
    missing = {name: kind for name, kind in wanted.items() if name not in found}
    if missing:
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        await client.operator_service.add_search_attributes(request, timeout=RPC)
    return tuple(sorted(missing))


class _Attribute(NamedTuple):
    name: str
    indexed_value_type_name: str


def _attributes() -> tuple[_Attribute, ...]:
    return tuple(_Attribute(key.name, "Int" if key is names.REVISION else "Keyword") for key in names.SEARCH_ATTRIBUTES)


class Repairs:
    """The repairs that are open in Temporal, addressed by node and never listed.

    While Temporal does not answer, calls fail at once with `Unreachable`, but for one now and then that tries.
    """

    def __init__(self, client: Client, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue
        self._gate = Gate("Temporal", Backoff(1.0, 10.0))

    @property
    def client(self) -> Client:
        """The connection, for `daytwo.temporal_runs`, which looks at more than one repair."""
        return self._client

    async def start(self, run: Run, summary: str) -> bool:
        """Start the repair's workflow; `False` if a workflow runs on the node already."""
        try:
            await self._reach(
                lambda: self._client.start_workflow(
                    names.NODE_REPAIR,
                    run,
                    id=names.workflow_id(run.cluster, run.node),
                    task_queue=self._task_queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    static_summary=summary[:200],
                    static_details=f"`daytwo repairs show {run.repair_id}` tells the whole story.",
                    search_attributes=_search_attributes(run),
                    rpc_timeout=RPC,
                )
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    async def look_again(self, cluster: str, node: str) -> None:
        """Tell the node's repair that its outcome has changed."""
        handle = self._client.get_workflow_handle(names.workflow_id(cluster, node))
        await self._reach(lambda: handle.signal(names.LOOK_AGAIN, rpc_timeout=RPC))

    async def decide(self, cluster: str, node: str, decision_id: str) -> None:
        """Hand the id of a decision row to the node's repair. A second delivery of the same id is no error."""
        handle = self._client.get_workflow_handle(names.workflow_id(cluster, node))
        try:
            await self._reach(
                lambda: handle.execute_update(names.DECIDE, decision_id, id=decision_id, rpc_timeout=TO_A_WORKER)
            )
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            raise Unreachable(f"{node}: its repair does not take decisions now; is a control worker up?") from error
        except WorkflowUpdateFailedError:
            return  # the validator has seen it: delivered before, or the repair has ended and voids it

    async def is_running(self, cluster: str, node: str) -> bool:
        """Whether a workflow runs under the node's id."""
        handle = self._client.get_workflow_handle(names.workflow_id(cluster, node))
        try:
            described = await self._reach(lambda: handle.describe(rpc_timeout=RPC))
        except NotFound:
            return False
        return described.status is WorkflowExecutionStatus.RUNNING

    async def polled_at(self) -> datetime | None:
        """When a control worker last asked for work; `None` where none has lately. Raises `Unreachable`."""
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=self._task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        service = self._client.workflow_service
        found = await self._reach(lambda: service.describe_task_queue(request, timeout=RPC))
        return max((poller.last_access_time.ToDatetime(UTC) for poller in found.pollers), default=None)

    async def _reach(self, call: Callable[[], Awaitable[R]]) -> R:
        """Make a call. Raises `NotFound` or `Unreachable`, and what the callee itself says of the request."""
        self._gate.check()
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await call()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                self._gate.answered()
                raise NotFound("no repair runs on this node in Temporal") from error
            self._gate.failed(error.message)
            raise Unreachable(f"Temporal does not answer: {error.message}") from error
        except (RuntimeError, TimeoutError) as error:  # while it connects
            self._gate.failed(str(error) or "it hangs")
            raise Unreachable(f"Temporal does not answer: {error}") from error
        except (
            WorkflowAlreadyStartedError,
            WorkflowUpdateFailedError,
            WorkflowUpdateRPCTimeoutOrCancelledError,
        ):
            self._gate.answered()
            raise
        self._gate.answered()
        return answer


def _search_attributes(run: Run) -> TypedSearchAttributes:
    return TypedSearchAttributes(
        [
            SearchAttributePair(names.CLUSTER, run.cluster),
            SearchAttributePair(names.NODE, run.node),
            SearchAttributePair(names.STATE, run.state),
            SearchAttributePair(names.REPAIR, run.repair_id),
            SearchAttributePair(names.REVISION, run.revision),
        ]
    )


class TemporalDelivery:
    """Hands decisions over at once; whatever fails here is handed over again by the reconciler."""

    def __init__(self, store: Store, repairs: Repairs) -> None:
        self._store = store
        self._repairs = repairs

    async def deliver(self, decision_id: str) -> None:
        """Deliver one decision to its repair. Raises `NotFound` or `TryAgain`; the row stays pending then."""
        cluster, node = await asyncio.to_thread(self._node_of, decision_id)
        await self._repairs.decide(cluster, node, decision_id)

    def _node_of(self, decision_id: str) -> tuple[str, str]:
        with self._store.read() as session:
            found = session.exec(
                select(RepairRow.cluster, RepairRow.node)
                .join(DecisionRow, col(DecisionRow.repair_id) == RepairRow.id)
                .where(DecisionRow.id == decision_id)
            ).first()
        if found is None:
            raise NotFound(f"decision: found {decision_id!r}, which is not in the store")
        return found
