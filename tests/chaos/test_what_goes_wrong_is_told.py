"""A run that lost or doubled something says so, and which kills the repair went through."""

from __future__ import annotations

import pytest

from tests.chaos import report
from tests.chaos.counting import Counts, Moved, next_event
from tests.chaos.lives import Life
from tests.chaos.strikes import Cell, Strike
from tests.chaos.watching import Open

STRIKE = Strike(Cell("worker", "kill", "verifying"), "node-01", "r-1", at=105.0, back=107.0)


def a_run(life: Life, **counted: int) -> report.Result:
    strike = Strike(STRIKE.cell, "node-01", "r-1", at=105.0, back=107.0, open={"node-01": Open("r-1", "verifying", 1)})
    counts = Counts(resets_at_bmcs=1, resets_by_front=1, resets_intended=1, audit_verified=True)
    for name, number in counted.items():
        setattr(counts, name, number)
    return report.Result(7, 60.0, 8, "SQLite", [strike], [life], counts)


def a_life(**fields: object) -> Life:
    life = Life("node-01", "straight", began=100.0, repairs=["r-1"], ended=130.0)
    for name, value in fields.items():
        setattr(life, name, value)
    return life


def test_a_run_in_which_all_returned_is_sound() -> None:
    assert a_run(a_life()).is_sound


@pytest.mark.parametrize("life", [{"problem": "it needs help"}, {"doubled": 1}, {"marks": 2}])
def test_a_life_that_went_astray_is_told_with_the_kills_that_hit_it(life: dict[str, object]) -> None:
    result = a_run(a_life(**life))
    assert not result.is_sound
    assert "kill worker, it was verifying" in report.as_text(result)


@pytest.mark.parametrize(
    "counted",
    [
        *("resets_at_bmcs", "resets_by_front", "lines_lost", "lines_doubled", "lines_invented", "still_firing"),
        *("marks", "requeues_doubled", "open_repairs", "unresolved_intents", "pending_decisions"),
    ],
)
def test_every_count_that_is_off_makes_the_run_unsound(counted: str) -> None:
    assert not a_run(a_life(), **{counted: 2}).is_sound


def test_an_audit_that_is_not_verified_makes_the_run_unsound() -> None:
    assert not a_run(a_life(), audit_verified=False).is_sound


@pytest.mark.parametrize(
    ("moved", "seconds"),
    [([], None), ([104.0, 110.0], 3.0), ([106.0, 110.0], 0.0)],
)
def test_recovery_counts_from_the_process_being_back(moved: list[float], seconds: float | None) -> None:
    assert next_event(STRIKE, [Moved(at, "r-1") for at in moved], of_any=False) == seconds


def test_the_tables_are_markdown_too() -> None:
    assert "| worker | kill |" in report.as_markdown(a_run(a_life()))
