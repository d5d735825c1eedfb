"""Changes to daytwo itself: cluster definitions and nodes' credentials. Not for everybody who may approve a repair.

A change and its audit row are one transaction: what is on record has happened, and what has happened is on record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime

from daytwo.domain.definition import ClusterDefinition
from daytwo.domain.errors import Refused
from daytwo.domain.load_definition import check_names
from daytwo.domain.policy import Policy
from daytwo.gateway.identity import issue_token_in
from daytwo.intake import declare_in
from daytwo.service import reads
from daytwo.service.decisions import Identity
from daytwo.service.models.acts import TokenIssued
from daytwo.service.models.plane import ClusterView
from daytwo.service.rights import NotAllowed, may_administer
from daytwo.store import audit
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow


def apply_cluster(
    store: Store, asker: Identity, definition: ClusterDefinition, *, owner: str, now: datetime
) -> ClusterView:
    """Declare a cluster or change it. Raises `Refused`, and `BadInput` as `declare_in` and `check_names` do."""
    check_names(definition)
    with store.write() as session:
        row = session.get(ClusterRow, definition.name)
        _check(asker, _policy(row) if row else None, owner)
        declare_in(session, definition, now=now)
        digest = hashlib.sha256(definition.model_dump_json().encode()).hexdigest()
        audit.append(session, asker.actor, "apply-cluster", definition.name, data={"sha256": digest}, now=now)
        session.flush()
        return reads.cluster(session, definition.name)


def issue(store: Store, asker: Identity, node: str, *, owner: str, now: datetime) -> TokenIssued:
    """Return a new token for a node's agent. Raises `NotFound` for the node, `BadInput` if ambiguous, and `Refused`."""
    with store.write() as session:
        row = reads.find_node(session, node)
        _check(asker, _policy(reads.find_cluster(session, row.cluster)), owner)
        token = issue_token_in(session, row.cluster, row.name, now=now)
        audit.append(session, asker.actor, "issue-token", f"{row.cluster}/{row.name}", now=now)
        return TokenIssued(cluster=row.cluster, node=row.name, token=token)


def check_all(asker: Identity, rows: Iterable[ClusterRow], owner: str) -> None:
    """Raise `Refused` unless the asker administers each of these clusters; without any, only the owner does."""
    policies: list[Policy | None] = [_policy(row) for row in rows]
    for policy in policies or [None]:
        _check(asker, policy, owner)


def _policy(row: ClusterRow) -> Policy:
    return ClusterDefinition.model_validate(row.definition).policy


def _check(asker: Identity, policy: Policy | None, owner: str) -> None:
    verdict = may_administer(policy, asker.actor, owner=owner)
    if isinstance(verdict, NotAllowed):
        raise Refused(verdict.why)
