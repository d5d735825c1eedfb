"""Takes nodes' credentials away. Issuing them is in `administration`."""

from __future__ import annotations

from datetime import datetime

from daytwo.gateway.identity import revoke_in
from daytwo.service import reads
from daytwo.service.administration import check_all
from daytwo.service.decisions import Identity
from daytwo.service.models.acts import TokensRevoked
from daytwo.store import audit
from daytwo.store.engine import Store


def revoke(store: Store, asker: Identity, node: str, *, owner: str, now: datetime) -> TokensRevoked:
    """Make every token of a node worthless at once. Raises `NotFound` for the node, `BadInput` and `Refused`."""
    with store.write() as session:
        row = reads.find_node(session, node)
        check_all(asker, [reads.find_cluster(session, row.cluster)], owner)
        count = revoke_in(session, row.cluster, row.name, now=now)
        audit.append(
            session, asker.actor, "revoke-tokens", f"{row.cluster}/{row.name}", data={"tokens": count}, now=now
        )
        return TokensRevoked(cluster=row.cluster, node=row.name, revoked=count)
