"""What a program does not answer is written down for `daytwo status`; a refusal is an answer."""

from __future__ import annotations

import pytest
from sqlmodel import select

from daytwo.outages import Outages, bmc_of
from daytwo.store.tables import PartRow
from tests.command.conftest import NODE, Machine


@pytest.mark.parametrize(
    ("line", "away"),
    [("time.sleep(60)", True), ("pass", True), ("sys.exit(1)", True), ("sys.exit(3)", False), ("sys.exit(4)", False)],
    ids=["hangs", "says nothing", "fails", "refuses", "wants to be asked again"],
)
async def test_a_program_that_cannot_be_read_is_away(machine: Machine, line: str, away: bool) -> None:
    machine.options["question_seconds"] = 1
    outages = Outages(machine.store, "worker")
    machine.watching = lambda node: outages.watching(bmc_of("east", node))
    with pytest.raises(Exception, match=NODE):
        await machine.saying(line).hardware.baseline(machine.act)
    with machine.store.read() as session:
        parts = [(row.part, row.away) for row in session.exec(select(PartRow))]
    assert parts == [(f"bmc/east/{NODE}", away)]
