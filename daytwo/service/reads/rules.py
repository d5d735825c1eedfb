"""What a cluster's policy comes to for one fault."""

from __future__ import annotations

from sqlmodel import Session, select

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import BadInput, NotFound
from daytwo.faults.catalogue import catalogue
from daytwo.service.models.rules import RuleView
from daytwo.service.reads.lookup import find_cluster
from daytwo.store.tables import ClusterRow


def rule(session: Session, fault_id: str, cluster: str | None) -> RuleView:
    """The effective rule of a fault. `cluster` may be left out where there is one. Raises `NotFound` and `BadInput`."""
    row = find_cluster(session, cluster) if cluster else _only(session)
    try:
        fault = catalogue().get(fault_id)
    except LookupError as error:
        raise NotFound(f"there is no fault {fault_id!r} in the catalogue") from error
    policy = ClusterDefinition.model_validate(row.definition).policy
    effective = policy.rule_for(fault)
    roles = [role for role, actions in policy.approval.roles.items() if {"*", effective.action.value} & set(actions)]
    windows = [w.name for w in policy.windows if w.is_for(effective.action, fault.fault_class)]
    return RuleView(
        cluster=row.name,
        policy_revision=row.policy_revision,
        rule=effective,
        approved_by=tuple(sorted(roles)),
        two_persons=effective.action in policy.approval.two_person,
        windows=tuple(windows),
    )


def _only(session: Session) -> ClusterRow:
    rows = session.exec(select(ClusterRow).order_by(ClusterRow.name)).all()
    if len(rows) != 1:
        names = ", ".join(row.name for row in rows) or "none is declared"
        raise BadInput(f"cluster: found nothing; allowed is one of: {names}")
    return rows[0]
