"""Who a node is: a bearer token of its own, kept hashed. The service issues and revokes; the gateway asks."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import bindparam
from sqlmodel import Session, col, select, update

from daytwo.intake import lock_node
from daytwo.store.engine import Store
from daytwo.store.tables import NodeTokenRow

PREFIX: Final = "dtn_"
"""Lets a token be found where it does not belong, by people and by scanners."""
SECRET_BYTES: Final = 32
LONGEST: Final = 128


@dataclass(frozen=True, slots=True)
class Identity:
    """The node that a token names. `token_hash` tells which of its tokens it was."""

    cluster: str
    node: str
    token_hash: str


def issue_token(store: Store, cluster: str, node: str, *, now: datetime) -> str:
    """Return a new token for the node, shown this once. Raises `NotFound` for a node that is not declared.

    Older tokens stay good until the node uses the new one: a token is rotated without a gap.
    """
    with store.write() as session:
        return issue_token_in(session, cluster, node, now=now)


def issue_token_in(session: Session, cluster: str, node: str, *, now: datetime) -> str:
    """The same, in the caller's write transaction."""
    token = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    lock_node(session, cluster, node)
    session.add(NodeTokenRow(hash=_hash(token), cluster=cluster, node=node, created_at=now))
    return token


def revoke_tokens(store: Store, cluster: str, node: str, *, now: datetime) -> int:
    """Make every token of the node worthless at once; return how many were good."""
    with store.write() as session:
        return _revoke(session, cluster, node, now)


def revoke_in(session: Session, cluster: str, node: str, *, now: datetime) -> int:
    """The same within the caller's transaction."""
    return _revoke(session, cluster, node, now)


def retire_older(session: Session, identity: Identity, *, now: datetime) -> None:
    """The node uses this token: those issued before it are no longer needed."""
    used = session.get(NodeTokenRow, identity.token_hash)
    if used is not None:
        _revoke(session, identity.cluster, identity.node, now, before=used.created_at)


def hash_of(authorization: str | None) -> str | None:
    """Return the hash of the token in an `Authorization` header, or `None` where there is none."""
    scheme, _, token = (authorization or "").partition(" ")
    return _hash(token) if scheme.lower() == "bearer" and 0 < len(token) <= LONGEST else None


def identify(store: Store, hashed: str) -> Identity | None:
    """Return the node whose token has this hash, or `None` if none has, or no more."""
    with store.read() as session:
        row = session.connection().execute(_GOOD, {"its_hash": hashed}).first()
    if row is None or not hmac.compare_digest(row.hash, hashed):
        return None
    return Identity(row.cluster, row.node, row.hash)


_GOOD: Final = select(NodeTokenRow.cluster, NodeTokenRow.node, NodeTokenRow.hash).where(
    NodeTokenRow.hash == bindparam("its_hash"), col(NodeTokenRow.revoked_at).is_(None)
)
"""Built once: every call of every node asks this."""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _revoke(session: Session, cluster: str, node: str, now: datetime, before: datetime | None = None) -> int:
    query = update(NodeTokenRow).where(
        col(NodeTokenRow.cluster) == cluster, col(NodeTokenRow.node) == node, col(NodeTokenRow.revoked_at).is_(None)
    )
    if before is not None:
        query = query.where(col(NodeTokenRow.created_at) < before)
    return session.exec(query.values(revoked_at=now)).rowcount
