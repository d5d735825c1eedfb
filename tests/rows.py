"""Rows that tests of the store, the service and the CLI start from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlmodel import SQLModel, select

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.policy import Approval, FaultRule, Person, Policy
from daytwo.domain.vocabulary import ClusterKind, Mode
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, FindingRow, NodeRow, RepairEventRow, RepairRow
from tests.builders import GPU, NOW, a_proposal

REPAIR = "r-20261130-142100-x7k2q"
ALICE = Person(name="Alice", roles=("operator",), identities=("cli:alice", "slack:U1"))
LEA = Person(name="Lea", roles=("lead",), identities=("cli:lea",))


def a_policy(**approval: Any) -> Policy:
    """The default policy with an operator and a lead."""
    return Policy(approval=Approval(**{"people": (ALICE, LEA)} | approval))


def an_automatic_policy(**approval: Any) -> Policy:
    """One that approves what it may by itself."""
    return a_policy(**approval).model_copy(update={"default": FaultRule(mode=Mode.AUTO)})


def a_definition(name: str = "east", **fields: Any) -> ClusterDefinition:
    """A simulated cluster of one node."""
    values = {"kind": ClusterKind.SIMULATED, "groups": (NodeGroup(nodes=("gpu-07",)),), "policy": a_policy()}
    return ClusterDefinition(name=name, **values | fields)


def a_cluster(name: str = "east", **fields: Any) -> ClusterRow:
    """A declared cluster."""
    definition = a_definition(name).model_dump(mode="json")
    return ClusterRow(**{"name": name, "kind": "simulated", "definition": definition, "updated_at": NOW} | fields)


def a_node(name: str = "gpu-07", **fields: Any) -> NodeRow:
    """A node that has been healthy for an hour."""
    values = {"cluster": "east", "state": "healthy", "state_since": NOW - timedelta(hours=1), "last_heard_at": NOW}
    return NodeRow(**values | {"name": name} | fields)


def a_repair(repair_id: str = REPAIR, **fields: Any) -> RepairRow:
    """An open repair whose second proposal stands: a reboot for a GPU off the bus."""
    proposal = a_proposal(repair_id=repair_id, revision=2)
    values: dict[str, Any] = {
        "id": repair_id,
        "cluster": "east",
        "node": "gpu-07",
        "open_key": "east/gpu-07",
        "state": "proposed",
        "state_since": NOW,
        "revision": 2,
        "action": "reboot",
        "fault": "xid-79",
        "proposal": proposal.model_dump(mode="json"),
        "opened_at": NOW,
    }
    return RepairRow(**values | fields)


def an_event(number: int = 1, **fields: Any) -> RepairEventRow:
    """A line of a repair's timeline."""
    values = {"repair_id": REPAIR, "at": NOW, "event": "revised", "from_state": "proposed", "to_state": "proposed"}
    return RepairEventRow(**values | {"number": number} | fields)


def a_finding_row(fault: str = "xid-79", **fields: Any) -> FindingRow:
    """A fault that fires on a GPU of the node."""
    values = {"cluster": "east", "node": "gpu-07", "entity": GPU, "status": "firing", "count": 1}
    times = {"first_seen": NOW, "last_seen": NOW, "last_received": NOW}
    return FindingRow(**values | times | {"fault": fault} | fields)


def hear_all(store: Store) -> None:
    """Every node speaks at this moment."""
    with store.write() as session:
        for row in session.exec(select(NodeRow)):
            row.last_heard_at = datetime.now(UTC)


def keep(store: Store, *rows: SQLModel) -> None:
    """Write rows in one transaction."""
    with store.write() as session:
        session.add_all(rows)
