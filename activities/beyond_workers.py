"""Nodes that others depend on, and the one that daytwo runs on. Asked by `authorise`.

Source: operations, rule 19.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from sqlmodel import Session, select

from daytwo.domain.exchange import RepairRef
from daytwo.domain.policy import Policy
from daytwo.domain.vocabulary import Action, NodeRole
from daytwo.store.situations import node_row
from daytwo.store.tables import LeaseRow


def own_branch(session: Session, node: str, action: Action | None) -> str:
    """Why not to act on this node: this process or a controller runs on it. An empty string where none does."""
    if action is None or action.touches_nothing or action is Action.VERIFY:
        return ""
    holders = session.exec(select(LeaseRow.holder)).all()
    hosts = {_short(socket.gethostname()), *(_short(holder.partition(":")[0]) for holder in holders)}
    if _short(node) not in hosts:
        return ""
    return f"daytwo itself runs on {node} and would end in the middle: move it to another host first"


def beyond_workers(session: Session, ref: RepairRef, policy: Policy, roles: Sequence[str]) -> str:
    """Why somebody with these roles may not have an act done to this node, or an empty string."""
    role, wanted = node_row(session, ref.cluster, ref.node).role, policy.approval.beyond_workers
    if role == NodeRole.WORKER or set(roles) & set(wanted):
        return ""
    return f"{ref.node} is a {role} node: an act on it needs one of the roles {', '.join(wanted) or 'none'}"


def _short(host: str) -> str:
    return host.split(".")[0].lower()
