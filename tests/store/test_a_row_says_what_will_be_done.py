"""The action on a repair's row: what is proposed, and what was approved only once that holds."""

from __future__ import annotations

import pytest

from daytwo import repairs
from daytwo.domain.exchange import RecordInput, RepairRef
from daytwo.domain.repair_states import Event
from daytwo.domain.vocabulary import Action, State
from daytwo.store.engine import Store
from daytwo.store.tables import RepairRow
from tests.builders import NOW, a_proposal
from tests.rows import REPAIR, a_node, a_repair, keep


@pytest.mark.parametrize(
    ("came_from", "event", "to_state", "action"),
    [
        (State.APPROVED, Event.AUTHORISED, State.QUARANTINING, "verify"),
        (State.WAITING, Event.HELD, State.HELD, "verify"),
        (State.PROPOSED, Event.HELD, State.HELD, "reboot"),
        (State.PROPOSED, Event.APPROVED, State.APPROVED, "reboot"),
    ],
)
def test_what_was_approved_of_an_earlier_revision_is_not_what_will_be_done(
    store: Store, came_from: State, event: Event, to_state: State, action: str
) -> None:
    keep(store, a_node(), a_repair(state=came_from))
    happened = RecordInput(
        ref=RepairRef(repair_id=REPAIR, cluster="east", node="gpu-07"),
        number=1,
        event=event,
        from_state=came_from,
        to_state=to_state,
        at=NOW,
        revision=2,
        rung=4,
        proposal=a_proposal(revision=2),
        approved_action=Action.VERIFY,
    )
    with store.write() as session:
        repairs.record(session, happened)
    with store.read() as session:
        assert session.get_one(RepairRow, REPAIR).action == action
