"""The third incident of one part in four weeks asks for its removal; what comes and goes is told once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.flapping import flaps, with_turn
from daytwo.domain.policy import Attempts, Flapping, Policy
from daytwo.domain.situation import PastRepair
from daytwo.domain.triage import triage
from daytwo.domain.verdicts import Propose
from daytwo.domain.vocabulary import Action, Mode, State
from daytwo.faults.catalogue import catalogue
from tests.builders import GPU, NOW, a_finding, a_past_repair, a_situation, an_open_repair

OTHER_GPU = "GPU-00000000-0000-0000-0000-000000000002"
DAY = timedelta(days=1)


def repaired(days_ago: float, **fields: Any) -> PastRepair:
    values: dict[str, Any] = {"entities": (GPU,), "closed_at": NOW - days_ago * DAY, "repair_id": f"r-{days_ago:g}"}
    return a_past_repair(**values | fields)


def proposed(*history: PastRepair, fault: str = "xid-79", entity: str = GPU, **policy: Any) -> Propose:
    situation = a_situation(a_finding(fault, entity), history=history)
    verdict = triage(situation, Policy(**policy), catalogue(), NOW)
    assert isinstance(verdict, Propose), verdict
    return verdict


def test_the_third_incident_of_a_gpu_in_four_weeks_proposes_its_removal() -> None:
    advice = proposed(repaired(3), repaired(20)).advice
    assert (advice.action, advice.mode) == (Action.REMOVE, Mode.RECOMMEND)
    assert (
        f"Incident 3 of class board on {GPU} in 28 days, repaired before on 10 Nov (r-20), 27 Nov (r-3)."
        in advice.reason
    )


@pytest.mark.parametrize(
    "history",
    [
        (),
        (repaired(3),),
        (repaired(3), repaired(28.01)),
        (repaired(3), repaired(20, entities=(OTHER_GPU,))),
        (repaired(3), repaired(20, fault="thermal-throttle")),
        (repaired(3), repaired(20, outcome=State.DISMISSED)),
        (repaired(3), repaired(20, outcome=State.AUTO_RESOLVED)),
        (repaired(3), repaired(20, acted=False)),
        (repaired(3), repaired(20, action=Action.INSPECT)),
    ],
    ids=[
        "first",
        "second",
        "too-old",
        "another-gpu",
        "another-class",
        "dismissed",
        "resolved",
        "not-acted",
        "told-only",
    ],
)
def test_fewer_or_other_incidents_are_repaired_as_ever(history: tuple[PastRepair, ...]) -> None:
    assert proposed(*history).advice.action is not Action.REMOVE


def test_another_fault_of_the_same_class_counts() -> None:
    assert proposed(repaired(3, fault="xid-48"), repaired(20), fault="xid-119").advice.action is Action.REMOVE


def test_what_concerned_the_whole_node_concerned_its_gpus() -> None:
    assert proposed(repaired(3, entities=("node",)), repaired(20)).advice.action is Action.REMOVE


def test_a_swapped_board_begins_anew() -> None:
    assert proposed(repaired(3), repaired(20), entity=OTHER_GPU).advice.action is not Action.REMOVE


def test_the_site_says_how_many() -> None:
    history = [repaired(day) for day in (3, 10, 20)]
    assert proposed(*history, attempts=Attempts(incidents=5)).advice.action is not Action.REMOVE
    assert proposed(*history[:1], attempts=Attempts(incidents=2)).advice.action is Action.REMOVE


def test_removal_is_never_automatic() -> None:
    automatic = {"faults": {"xid-79": {"mode": "auto"}}}
    assert (
        proposed(repaired(3), repaired(20), **Policy.model_validate(automatic).model_dump()).advice.mode
        is Mode.RECOMMEND
    )


@pytest.mark.parametrize("fault", ["nic-link-down-of-tomorrow", "agent-silent", "thermal-throttle"])
def test_a_ladder_that_ends_before_removal_is_not_lengthened(fault: str) -> None:
    rules = {"faults": {fault: {"mode": "recommend", "debounce_seconds": 0}}}
    history = (repaired(3, fault=fault), repaired(20, fault=fault))
    advice = proposed(*history, fault=fault, **Policy.model_validate(rules).model_dump()).advice
    assert advice.action is not Action.REMOVE


def test_a_repair_that_is_open_asks_for_removal_too() -> None:
    history = (repaired(3), repaired(20))
    situation = a_situation(a_finding(), history=history, open_repair=an_open_repair(disturbed=True))
    verdict = triage(situation, Policy(), catalogue(), NOW)
    assert isinstance(verdict, Propose)
    assert verdict.advice.action is Action.REMOVE


RULE = Flapping()


@pytest.mark.parametrize(
    ("hours_ago", "flapping"),
    [((), False), ((1,), False), ((2, 1), False), ((3, 2, 1), True), ((24, 2, 1), False), ((23.9, 2, 1), True)],
)
def test_three_ends_within_a_day_are_flapping(hours_ago: tuple[float, ...], flapping: bool) -> None:
    assert flaps([NOW - timedelta(hours=hours) for hours in hours_ago], NOW, RULE) is flapping


def test_only_the_ends_that_count_are_kept() -> None:
    turns: tuple[Any, ...] = ()
    for hours in (30, 10, 9, 8, 7, 0):
        turns = with_turn(turns, NOW - timedelta(hours=hours), RULE)
    assert turns == (NOW - timedelta(hours=8), NOW - timedelta(hours=7), NOW)


def test_a_proposal_says_that_its_fault_flaps() -> None:
    turns = tuple(NOW - timedelta(hours=hours) for hours in (3, 2, 1))
    verdict = triage(a_situation(a_finding("recovery-action", turns=turns)), Policy(), catalogue(), NOW)
    assert isinstance(verdict, Propose)
    assert "It came and went 3 times in 24 h (30 Nov 11:21, 30 Nov 12:21, 30 Nov 13:21 UTC)" in verdict.advice.reason
