"""How the plane speaks to Temporal: connect, register search attributes, start a repair, tell it something.

Used by the control worker, the controller and the service. Address, namespace, TLS and keys come from
`temporalio.envconfig` (`TEMPORAL_*`, `temporal.toml`), so that a production cluster is configuration only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, NamedTuple

from sqlmodel import col, select
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from daytwo.domain.errors import BadInput, NotFound, Unreachable
from daytwo.domain.exchange import Run
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, RepairRow
from workflows import names

RPC: Final = timedelta(seconds=10)
"""A call that takes longer is given up and made again by the reconciler: rows are the truth, not calls."""

DEFAULT_ADDRESS: Final = "localhost:7233"
"""Where Temporal is when nothing says otherwise, as for its own command line."""

TYPES: Final = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Int": IndexedValueType.INDEXED_VALUE_TYPE_INT,
}


async def connect() -> Client:
    """Connect as the environment says. Raises `Unreachable` naming the address."""
    config = ClientConfig.load_client_connect_config()
    address = config.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        return await Client.connect(**config, data_converter=pydantic_data_converter)
    except RuntimeError as error:
        raise Unreachable(f"Temporal at {address} does not answer: {error}; see TEMPORAL_ADDRESS") from error


async def register_search_attributes(client: Client) -> tuple[str, ...]:
    """Add what is missing, on any server; returns the names that were added. Raises `BadInput` for a wrong type."""
    asked = ListSearchAttributesRequest(namespace=client.namespace)
    found = (await client.operator_service.list_search_attributes(asked)).custom_attributes
    wanted = {key.name: TYPES[key.indexed_value_type_name] for key in _attributes()}
    wrong = sorted(name for name, kind in wanted.items() if name in found and found[name] != kind)
    if wrong:
        raise BadInput(
            f"search attribute {wrong[0]} exists in namespace {client.namespace} with another type; remove it first"
        )
    missing = {name: kind for name, kind in wanted.items() if name not in found}
    if missing:
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        await client.operator_service.add_search_attributes(request)
    return tuple(sorted(missing))


class _Attribute(NamedTuple):
    name: str
    indexed_value_type_name: str


def _attributes() -> tuple[_Attribute, ...]:
    return tuple(_Attribute(key.name, "Int" if key is names.REVISION else "Keyword") for key in names.SEARCH_ATTRIBUTES)


class Repairs:
    """The repairs that are open in Temporal, addressed by node and never listed."""

    def __init__(self, client: Client, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue

    async def start(self, run: Run, summary: str) -> bool:
        """Start the repair's workflow; `False` if a workflow runs on the node already."""
        try:
            await self._client.start_workflow(
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
        except WorkflowAlreadyStartedError:
            return False
        except RPCError as error:
            raise Unreachable(f"Temporal does not start workflows: {error.message}") from error
        return True

    async def look_again(self, cluster: str, node: str) -> None:
        """Tell the node's repair that its outcome has changed."""
        handle = self._client.get_workflow_handle(names.workflow_id(cluster, node))
        await _reach(lambda: handle.signal(names.LOOK_AGAIN, rpc_timeout=RPC))

    async def decide(self, cluster: str, node: str, decision_id: str) -> None:
        """Hand the id of a decision row to the node's repair. A second delivery of the same id is no error."""
        handle = self._client.get_workflow_handle(names.workflow_id(cluster, node))
        try:
            await _reach(lambda: handle.execute_update(names.DECIDE, decision_id, id=decision_id, rpc_timeout=RPC))
        except WorkflowUpdateFailedError:
            return  # the validator has seen it: delivered before, or the repair has ended and voids it

    async def is_running(self, cluster: str, node: str) -> bool:
        """Whether a workflow runs under the node's id."""
        handle = self._client.get_workflow_handle(names.workflow_id(cluster, node))
        try:
            described = await handle.describe(rpc_timeout=RPC)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise Unreachable(f"Temporal does not describe workflows: {error.message}") from error
        return described.status is WorkflowExecutionStatus.RUNNING


async def _reach(call: Callable[[], Awaitable[object]]) -> None:
    try:
        await call()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NotFound("no repair runs on this node in Temporal") from error
        raise Unreachable(f"Temporal does not answer: {error.message}") from error


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
        """Deliver one decision to its repair. Raises `NotFound` or `Unreachable`; the row stays pending then."""
        with self._store.read() as session:
            found = session.exec(
                select(RepairRow.cluster, RepairRow.node)
                .join(DecisionRow, col(DecisionRow.repair_id) == RepairRow.id)
                .where(DecisionRow.id == decision_id)
            ).first()
        if found is None:
            raise NotFound(f"decision: found {decision_id!r}, which is not in the store")
        cluster, node = found
        await self._repairs.decide(cluster, node, decision_id)
