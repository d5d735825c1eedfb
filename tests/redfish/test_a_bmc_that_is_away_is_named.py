"""What a BMC does not answer is written down for `daytwo status`, and that it answers again."""

from __future__ import annotations

import pytest
from sqlmodel import select

from daytwo.domain.errors import UnknownAnswer, Unreachable
from daytwo.outages import Outages, bmc_of
from daytwo.store.tables import PartRow
from tests.redfish.bmc import ROOT, SYSTEM, Answer
from tests.redfish.conftest import NODE, Desk, an_act


def watched(desk: Desk) -> Outages:
    outages = Outages(desk.store, "worker", now=desk.clock)
    desk.options |= {"read_seconds": 0.3, "watching": lambda node: outages.watching(bmc_of("east", node))}
    return outages


def parts(desk: Desk) -> list[tuple[str, bool]]:
    with desk.store.read() as session:
        return [(row.part, row.away) for row in session.exec(select(PartRow))]


async def test_a_bmc_that_hangs_is_away_until_it_answers(desk: Desk) -> None:
    watched(desk)
    desk.bmc.answer_oddly(f"GET {SYSTEM}", Answer(seconds=30))
    with pytest.raises(Unreachable):
        await desk.driver().baseline(an_act())
    assert parts(desk) == [(f"bmc/east/{NODE}", True)]
    await desk.driver().baseline(an_act())
    assert parts(desk) == [(f"bmc/east/{NODE}", False)]


async def test_a_bmc_that_answers_nonsense_is_away(desk: Desk) -> None:
    watched(desk)
    desk.bmc.answer_oddly(f"GET {ROOT}Systems", *[Answer(200, b"<html>welcome</html>")] * 4)
    with pytest.raises(UnknownAnswer):
        await desk.driver().baseline(an_act())
    assert parts(desk) == [(f"bmc/east/{NODE}", True)]
