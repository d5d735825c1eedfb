"""What an act of administration answers; a decision answers with its own row. The modules that act make them."""

from __future__ import annotations

from daytwo.domain.vocabulary import Frozen


class NodeHeld(Frozen):
    """A node and who holds it; `decision` is what was decided on its open repair."""

    cluster: str
    node: str
    held_by: str | None
    decision: str | None


class ClusterRemoved(Frozen):
    """A cluster is not looked after any more; `nodes` is how many it had."""

    cluster: str
    nodes: int


class TokensRevoked(Frozen):
    """A node's credentials are gone; `revoked` is how many were good."""

    cluster: str
    node: str
    revoked: int


class TokenIssued(Frozen):
    """A node's new credential. It is shown once; the store keeps only its hash."""

    cluster: str
    node: str
    token: str
