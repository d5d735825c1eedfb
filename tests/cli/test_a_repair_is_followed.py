"""show and watch: the timeline and the stamps of a repair, and its end."""

from __future__ import annotations

import pytest

from daytwo.store.engine import Store
from daytwo.store.tables import RepairRow
from tests.cli.conftest import Cli
from tests.rows import REPAIR, a_repair, an_event, keep


def test_what_a_repair_waits_for_is_shown(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).waiting_for = "needs a second person"
    assert "needs a second person" in cli("repairs", "list").out
    assert "Waits: needs a second person" in cli("repairs", "show", REPAIR).out


def test_a_timeline_is_told_in_words(cli: Cli, fleet: Store) -> None:
    keep(fleet, an_event(1), an_event(2, event="approved", to_state="approved", text="approved"))
    keep(fleet, an_event(3, event="revised", data={"revision": 2}))
    out = cli("repairs", "show", REPAIR).out
    assert [words in out for words in ("Z  proposed  by", "Z  approved  by", "revised to revision 2")] == [True] * 3


def test_a_timeline_says_what_its_text_says_once(cli: Cli, fleet: Store) -> None:
    text = "the approved moment has come and the budget allows it"
    keep(fleet, an_event(1, event="moment-came", from_state="waiting", to_state="draining", text=text))
    assert f"Z  {text} → draining  by daytwo\n" in cli("repairs", "show", REPAIR).out


@pytest.mark.parametrize("event", ["approved", "held", "dismissed"])
def test_a_timeline_does_not_say_the_same_twice(cli: Cli, fleet: Store, event: str) -> None:
    keep(fleet, an_event(1, event=event, to_state=event, text=event))
    line = next(line for line in cli("repairs", "show", REPAIR).out.splitlines() if "  by daytwo" in line)
    assert line.count(event.replace("-", " ")) == 1
    assert "→" not in line


def test_stamps_are_told_in_the_order_of_a_repair(cli: Cli, fleet: Store) -> None:
    at = "2026-11-30T14:00:00+00:00"
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).stamps = {"returned": at, "approved": at, "detected": at}
    shown = cli("repairs", "show", REPAIR).out
    assert shown.index("detected:") < shown.index("approved:") < shown.index("returned:")


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("dismissed", 1), ("removed", 1), ("auto-resolved", 1)])
def test_watching_ends_with_the_repair(cli: Cli, fleet: Store, state: str, code: int) -> None:
    with fleet.write() as session:
        session.merge(a_repair(state=state, open_key=None, outcome="as said"))
    keep(fleet, an_event(1), an_event(2, event="acted", to_state="verifying"))
    done = cli("repairs", "watch", REPAIR)
    assert done.code == code
    assert ("acted → verifying" in done.out, done.out.splitlines()[-1]) == (True, f"{state}: as said")


def test_watching_an_open_repair_times_out(cli: Cli) -> None:
    done = cli("repairs", "watch", REPAIR, "--timeout", "1s")
    assert done.code == 6
    assert "It waits for a person (proposed)" in done.err
