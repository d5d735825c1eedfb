"""The pulse of a node to which nothing happens, which is nearly every pulse: one question and one update.

`daytwo.gateway.app` calls it first, for all that came at the same moment (`together`), each with who its token named
when it was last good: whether it still does is part of the question. Whatever is not exactly as before, or asks for
more, goes the longer way of `daytwo.gateway.pulse`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, String, and_, bindparam, not_, or_, select, update
from sqlmodel import col

from daytwo import node_requests
from daytwo.domain.vocabulary import FindingStatus
from daytwo.gateway.identity import Identity
from daytwo.gateway.models import Pulse
from daytwo.store.engine import Store
from daytwo.store.tables import FindingRow, NodeRequestRow, NodeRow, NodeTokenRow, RepairRow

_CLUSTER: Final = bindparam("its_cluster", type_=String)
_NODE: Final = bindparam("its_node", type_=String)


Said = tuple[Identity, Pulse]


def take_idle(
    store: Store, said: Sequence[Said], *, now: datetime, pulse_seconds: float
) -> list[dict[str, Any] | None]:
    """Note that these nodes spoke, and return the answers; `None` where there is more to it, and nothing is written."""
    answers: list[dict[str, Any] | None] = [None] * len(said)
    with store.write() as session:
        connection = session.connection()
        # In the order in which whoever locks several nodes locks them.
        for number in sorted(range(len(said)), key=lambda number: (said[number][0].cluster, said[number][0].node)):
            if _is_heard(connection, *said[number], now):
                answers[number] = _answer(pulse_seconds)
    return answers


def says_little(said: Pulse) -> bool:
    """True for a pulse that can be an idle node's."""
    return not said.answers and said.checks is None and said.inventory is None


def _answer(pulse_seconds: float) -> dict[str, Any]:
    return {"requests": [], "withdrawn": [], "come_back_seconds": pulse_seconds, "send_full": False}


def _is_heard(connection: Connection, identity: Identity, said: Pulse, now: datetime) -> bool:
    its = {"its_cluster": identity.cluster, "its_node": identity.node}
    asked = its | {"its_token": identity.token_hash, "told_since": now - node_requests.TOLD_FOR}
    found = connection.execute(_LOOK, asked).first()
    if found is None or found.busy or not _is_as_before(found, said):
        return False
    heard = {"heard_at": now, "skew": said.clock - now.timestamp(), "its_boot": said.boot_id}
    connection.execute(_HEARD, its | heard)
    return True


def _is_as_before(found: Any, said: Pulse) -> bool:
    known = (found.boot_id, found.checks_digest, found.agent_version, found.kernel_log)
    if known != (said.boot_id, said.digest, said.version, said.kernel_log):
        return False
    same = found.identity == said.identity.model_dump(exclude_none=True)
    return same and found.last_heard_at is not None and said.stream in (0, found.stream)


def _is_firing() -> ColumnElement[bool]:
    mine = (
        col(FindingRow.cluster) == _CLUSTER,
        col(FindingRow.node) == _NODE,
        col(FindingRow.status) == FindingStatus.FIRING,
    )
    return select(col(FindingRow.id)).where(*mine).exists()


def _is_repaired() -> ColumnElement[bool]:
    mine = (col(RepairRow.cluster) == _CLUSTER, col(RepairRow.node) == _NODE, col(RepairRow.open_key).is_not(None))
    return select(col(RepairRow.id)).where(*mine).exists()


def _is_asked() -> ColumnElement[bool]:
    """It owes an answer, or is still to be told that a request has ended."""
    state = col(NodeRequestRow.state)
    ended = state.in_((node_requests.WITHDRAWN, node_requests.LAPSED))
    told = and_(ended, col(NodeRequestRow.ended_at) > bindparam("told_since"))
    mine = (col(NodeRequestRow.cluster) == _CLUSTER, col(NodeRequestRow.node) == _NODE)
    return select(col(NodeRequestRow.id)).where(*mine, or_(state.in_(node_requests.UNANSWERED), told)).exists()


def _good_tokens(whose: ColumnElement[bool]) -> ColumnElement[bool]:
    mine = (col(NodeTokenRow.cluster) == _CLUSTER, col(NodeTokenRow.node) == _NODE, whose)
    return select(col(NodeTokenRow.hash)).where(*mine, col(NodeTokenRow.revoked_at).is_(None)).exists()


_TOKEN: Final = bindparam("its_token", type_=String)
_IS_GOOD: Final = _good_tokens(col(NodeTokenRow.hash) == _TOKEN)
_HAS_OTHERS: Final = _good_tokens(col(NodeTokenRow.hash) != _TOKEN)


_LOOK: Final = select(
    col(NodeRow.boot_id),
    col(NodeRow.checks_digest),
    col(NodeRow.agent_version),
    col(NodeRow.kernel_log),
    col(NodeRow.identity),
    col(NodeRow.last_heard_at),
    col(NodeRow.stream),
    or_(_is_firing(), _is_repaired(), _is_asked(), not_(_IS_GOOD), _HAS_OTHERS).label("busy"),
).where(col(NodeRow.cluster) == _CLUSTER, col(NodeRow.name) == _NODE)
_HEARD: Final = (
    update(NodeRow)
    .where(col(NodeRow.cluster) == _CLUSTER, col(NodeRow.name) == _NODE, col(NodeRow.boot_id) == bindparam("its_boot"))
    .values(
        last_heard_at=bindparam("heard_at"), clock_skew_seconds=bindparam("skew"), identity_at=bindparam("heard_at")
    )
)
"""Built once: to build a statement takes longer than to run it."""
