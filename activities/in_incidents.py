"""A repair of one node of many that fell for one cause: whether it may be acted on alone.

Asked by `authorise` and `activities.by_policy`. While an incident goes on automatic mode is off in it (design 6), and
who approves one repair of it must know that it is one of many: their reason names the incident. Source: operations,
rule 6.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlmodel import Session, select

from daytwo.domain.common_cause import pool_domain
from daytwo.domain.exchange import RepairRef
from daytwo.domain.vocabulary import Action
from daytwo.store.situations import node_row
from daytwo.store.surroundings import class_of
from daytwo.store.tables import IncidentRow, RepairRow


def incident_around(
    session: Session, ref: RepairRef, action: Action | None, *, hold_seconds: float, now: datetime
) -> IncidentRow | None:
    """The incident that holds the repairs of a node and its fault back, where the action would touch the node."""
    repair = session.get_one(RepairRow, ref.repair_id)
    if repair.fault is None or action is None or action.touches_nothing or action is Action.VERIFY:
        return None
    key = f"{ref.cluster}/{class_of(repair.fault)}"
    found = session.exec(select(IncidentRow).where(IncidentRow.open_key == key)).first()
    if found is None or now > found.last_at + timedelta(seconds=hold_seconds):
        return None
    node = node_row(session, ref.cluster, ref.node)
    return found if {*node.domains, pool_domain(node.pool)} & set(found.domains) else None


def refusal(incident: IncidentRow, reason: str) -> str:
    """Why one repair of an incident is not acted on, or an empty string where its approval names the incident."""
    if incident.id in reason:
        return ""
    return (
        f"{incident.nodes} nodes have {incident.fault_class} faults in incident {incident.id}, probably for one cause: "
        f"to act on this node alone all the same, approve it with a --reason that names {incident.id}"
    )


def hold_up(incident: IncidentRow) -> str:
    """What an automatic approval waits for."""
    return f"automatic mode is off while incident {incident.id} goes on ({incident.nodes} nodes)"
