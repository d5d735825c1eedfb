"""The shown state of nodes follows what the reconciler has seen of them, with a row for each change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlmodel import Session

from daytwo.controller.looking import Looked
from daytwo.domain.vocabulary import NodeState
from daytwo.intents import Guard
from daytwo.store.engine import Store
from daytwo.store.locks import lock_nodes
from daytwo.store.tables import NodeRow, NodeTransitionRow


class Shown:
    """Writes looks down; `guard` refuses every write once another controller holds the lease."""

    def __init__(self, store: Store, guard: Guard, now: Callable[[], datetime]) -> None:
        self._store, self._guard, self._now = store, guard, now

    def write(self, looks: Sequence[Looked]) -> None:
        """Nodes of one cluster have been looked at up to the count that was read; their shown states follow."""
        changed = {each.row.name: each for each in looks if _is_changed(each)}
        if not changed:
            return
        with self._store.write() as session:
            self._guard(session)
            for name, row in lock_nodes(session, looks[0].row.cluster, changed).items():
                self._write_look(session, row, changed[name])

    def _write_look(self, session: Session, row: NodeRow, looked: Looked) -> None:
        state, why = looked.state
        row.judged = max(row.judged, looked.row.due)
        if row.state != state:
            session.add(_transition(row, state, why, self._now()))
            row.state, row.state_since = state, self._now()
        row.state_why = why
        session.add(row)


def _is_changed(looked: Looked) -> bool:
    row = looked.row
    return row.judged < row.due or (row.state, row.state_why) != looked.state


def _transition(row: NodeRow, state: NodeState, why: str, now: datetime) -> NodeTransitionRow:
    return NodeTransitionRow(cluster=row.cluster, node=row.name, from_state=row.state, to_state=state, why=why, at=now)
