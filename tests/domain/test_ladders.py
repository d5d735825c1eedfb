"""What comes after what, for each class of fault."""

from __future__ import annotations

import pytest

from daytwo.domain.ladders import LADDERS, RUNGS, climbs, ladder_from, next_rung, rung_of
from daytwo.domain.vocabulary import Action, FaultClass

A = Action
BOARD = LADDERS[FaultClass.BOARD]


@pytest.mark.parametrize("fault_class", FaultClass)
def test_every_class_has_a_ladder_that_climbs(fault_class: FaultClass) -> None:
    assert climbs(LADDERS[fault_class])


def test_every_action_has_a_rung() -> None:
    assert set(RUNGS) == set(Action)


@pytest.mark.parametrize("fault_class", FaultClass)
def test_only_software_and_filesystems_are_ever_reprovisioned(fault_class: FaultClass) -> None:
    wipes = Action.REPROVISION in LADDERS[fault_class]
    assert wipes is (fault_class in (FaultClass.SOFTWARE, FaultClass.FILESYSTEM))


@pytest.mark.parametrize("fault_class", [FaultClass.FACILITY, FaultClass.AGENT])
def test_what_is_the_sites_or_ours_is_no_reason_to_touch_a_node(fault_class: FaultClass) -> None:
    assert all(action.touches_nothing for action in LADDERS[fault_class])


@pytest.mark.parametrize(
    ("first", "ladder"),
    [
        (A.RESET_GPU, (A.RESET_GPU, A.REBOOT, A.POWER_CYCLE, A.FAILOVER, A.REMOVE)),
        (A.REBOOT, (A.REBOOT, A.POWER_CYCLE, A.FAILOVER, A.REMOVE)),
        (A.POWER_CYCLE, (A.POWER_CYCLE, A.FAILOVER, A.REMOVE)),
        (A.VERIFY, (A.VERIFY, A.RESET_GPU, A.REBOOT, A.POWER_CYCLE, A.FAILOVER, A.REMOVE)),
        (A.REMOVE, (A.REMOVE,)),
        (A.INSPECT, (A.INSPECT,)),
    ],
)
def test_a_ladder_is_climbed_from_its_first_action(first: Action, ladder: tuple[Action, ...]) -> None:
    assert ladder_from(BOARD, first) == ladder


def test_an_inspection_that_stands_on_the_ladder_leads_on() -> None:
    assert ladder_from(LADDERS[FaultClass.LINK], A.INSPECT) == (A.INSPECT, A.FAILOVER)


@pytest.mark.parametrize(
    ("rung", "action"),
    [(-1, A.RESET_GPU), (3, A.REBOOT), (4, A.POWER_CYCLE), (5, A.FAILOVER), (7, A.REMOVE), (8, None)],
)
def test_the_next_rung_takes_away_more(rung: int, action: Action | None) -> None:
    assert next_rung(BOARD, rung) is action


@pytest.mark.parametrize("ladder", [(), (A.REBOOT, A.RESET_GPU), (A.REBOOT, A.REBOOT), (A.VERIFY, A.RUN_DIAGNOSTIC)])
def test_a_ladder_that_does_not_climb_is_none(ladder: tuple[Action, ...]) -> None:
    assert not climbs(ladder)


@pytest.mark.parametrize("action", [A.TELL_OWNER, A.INSPECT])
def test_what_touches_nothing_is_the_lowest_rung(action: Action) -> None:
    assert rung_of(action) == 0
