"""Two approvals are judged at the same time: the later one knows what became of the earlier one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sqlmodel import Session

from daytwo.domain.vocabulary import Action
from daytwo.store.engine import Store
from daytwo.store.tables import DecisionRow, RepairRow
from tests.approvals.conftest import a_court
from tests.rows import REPAIR
from tests.store.meeting import while_open


def test_the_second_of_two_approvals_is_not_counted_as_a_first(store: Store, tmp_path: Path) -> None:
    court = a_court(store, tmp_path, two_person=(Action.REBOOT,))
    first, second = court.written("cli:lea"), court.written("cli:leo")

    def count(session: Session) -> None:
        session.get_one(RepairRow, REPAIR, with_for_update=True)
        session.get_one(DecisionRow, first, with_for_update=True).status = "counted"

    with while_open(store, count, lambda: asyncio.run(court.judge(second))) as judging:
        assert judging.result().status == "accepted"
