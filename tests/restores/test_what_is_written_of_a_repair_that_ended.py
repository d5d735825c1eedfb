"""What a restored store writes of a repair that ended since its backup: that it did, and no guess on its acts."""

from __future__ import annotations

import pytest
from sqlmodel import select

from daytwo.controller import settled_rows
from daytwo.domain.exchange import Run
from daytwo.domain.repair_states import TERMINAL
from daytwo.domain.vocabulary import NOT_KNOWN, State
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow
from tests.builders import NOW
from tests.rows import REPAIR, a_repair, an_event, keep


def ended(state: State) -> Run:
    return Run(repair_id=REPAIR, cluster="east", node="gpu-07", state=state, event_number=9, since=NOW)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_its_timeline_ends_with_its_end(store: Store, state: State) -> None:
    row = a_repair(state="acting")
    keep(store, an_event(4))
    with store.read() as session:
        last = settled_rows.last_number(session, REPAIR)
    line = settled_rows.end_event(row, ended(state), last, NOW)
    assert (line.number, line.from_state, line.to_state, line.text) == (9, "acting", state, settled_rows.ENDED)


def test_of_its_acts_it_is_not_said_that_they_failed(store: Store) -> None:
    of = {"cluster": "east", "node": "gpu-07", "created_at": NOW, "updated_at": NOW, "open_node": "east/gpu-07"}
    keep(store, IntentRow(id="i-1", repair_id=REPAIR, driver="bmc", kind="reboot", target="gpu-07", **of))
    store.change(lambda session: settled_rows.give_up(session, REPAIR, "it ended before the store was restored"))
    with store.read() as session:
        assert session.exec(select(IntentRow.proof_type, IntentRow.open_node)).one() == (NOT_KNOWN, None)
