"""The state machine of a repair: each row, and what must hold for all of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from daytwo.domain.repair_states import (
    EVENT_OF,
    HELD_FROM,
    RULES,
    TERMINAL,
    TRANSITIONS,
    Event,
    after,
    is_terminal,
    mermaid,
)
from daytwo.domain.vocabulary import DecisionKind, State

ROOT = Path(__file__).parents[2]
S, E = State, Event

# Written again by hand, from the design: the table is what this says, not what it happens to be.
MOVES = {
    S.PROPOSED: "revised>proposed approved>approved dismissed>dismissed cleared>auto-resolved held>held "
    "stuck>needs-help",
    S.APPROVED: "authorised>quarantining not-authorised>proposed expired>proposed noted>succeeded dismissed>dismissed "
    "held>held stuck>needs-help",
    S.QUARANTINING: "quarantined>waiting dismissed>dismissed held>held stuck>needs-help",
    S.WAITING: "moment-came>draining nothing-to-do>verifying booted-by-another>verifying stakes-grew>proposed "
    "cleared>auto-resolved expired>proposed dismissed>dismissed held>held stuck>needs-help",
    S.DRAINING: "drained>acting booted-by-another>verifying dismissed>dismissed held>held stuck>needs-help",
    S.ACTING: "acted>verifying booted-by-another>verifying retired>removed stuck>needs-help",
    S.VERIFYING: "verified>rejoining still-faulty>proposed stuck>needs-help",
    S.REJOINING: "rejoined>succeeded still-faulty>proposed stuck>needs-help",
    S.NEEDS_HELP: "retried>approved test-asked>verifying removal-decided>removed handed-over>handed-over",
}
EXPECTED = {
    (state, E(event)): S(to)
    for state, moves in MOVES.items()
    for event, to in (move.split(">") for move in moves.split())
}
NOT_HELD = [state for state in State if state is not S.HELD]


@pytest.mark.parametrize(("state", "event"), [*itertools.product(NOT_HELD, Event)])
def test_each_event_leads_where_the_design_says_or_is_not_accepted(state: State, event: Event) -> None:
    assert after(state, event) == EXPECTED.get((state, event))


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("held_from", sorted(HELD_FROM))
def test_a_held_repair_goes_back_or_ends_or_asks_for_help(held_from: State, event: Event) -> None:
    back = S.WAITING if held_from is S.DRAINING else held_from
    allowed = {E.RELEASED: back, E.DISMISSED: S.DISMISSED, E.STUCK: S.NEEDS_HELP}
    assert after(S.HELD, event, held_from=held_from) == allowed.get(event)


def test_a_hold_is_possible_before_the_act_and_not_after_it_began() -> None:
    assert {S.PROPOSED, S.APPROVED, S.QUARANTINING, S.WAITING, S.DRAINING} == HELD_FROM


def reached(state: State, seen: set[State]) -> set[State]:
    seen.add(state)
    for held_from, event in itertools.product(HELD_FROM, Event):
        to = after(state, event, held_from=held_from)
        if to is not None and to not in seen:
            reached(to, seen)
    return seen


def test_every_state_can_be_reached() -> None:
    assert reached(S.PROPOSED, set()) == set(State)


@pytest.mark.parametrize("state", [state for state in State if state not in TERMINAL])
def test_every_state_that_is_not_an_end_leads_to_one(state: State) -> None:
    assert reached(state, set()) & TERMINAL


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_nothing_leads_out_of_an_end(state: State) -> None:
    assert is_terminal(state)
    assert not any(after(state, event) for event in Event)


@pytest.mark.parametrize("state", [state for state in State if state not in TERMINAL])
def test_a_state_waits_for_a_person_or_has_a_limit(state: State) -> None:
    rule = RULES[state]
    assert rule.waits_for_person is (rule.limit is None)
    assert rule.says


def test_three_states_wait_for_a_person() -> None:
    assert {state for state, rule in RULES.items() if rule.waits_for_person} == {S.PROPOSED, S.NEEDS_HELP, S.HELD}


@pytest.mark.parametrize("state", [state for state, rule in RULES.items() if rule.limit is not None])
def test_a_state_with_a_limit_has_somewhere_to_go_when_it_passes(state: State) -> None:
    assert after(state, E.EXPIRED) is S.PROPOSED or after(state, E.STUCK) is S.NEEDS_HELP


@pytest.mark.parametrize("state", [S.ACTING, S.VERIFYING, S.REJOINING, S.NEEDS_HELP])
def test_after_the_act_began_nothing_dismisses_a_repair(state: State) -> None:
    assert after(state, E.DISMISSED) is None
    assert after(state, E.CLEARED) is None


def test_a_node_returns_only_through_tests() -> None:
    into = {state for (state, _), to in TRANSITIONS.items() if to is S.REJOINING}
    assert into == {S.VERIFYING}


@pytest.mark.parametrize("kind", DecisionKind)
def test_every_decision_is_an_event_that_some_state_takes(kind: DecisionKind) -> None:
    assert any(after(state, EVENT_OF[kind], held_from=S.PROPOSED) for state in State)


def test_every_event_is_accepted_somewhere() -> None:
    assert {event for _, event in TRANSITIONS} | {E.RELEASED} == set(Event)


def test_the_page_shows_the_diagram_of_the_table() -> None:
    page = (ROOT / "docs/repair-states.md").read_text()
    assert page.split("```mermaid\n")[1].split("\n```")[0] == mermaid()


@pytest.mark.parametrize("state", RULES)
def test_the_page_says_what_happens_in_each_state(state: State) -> None:
    assert f"| `{state.value}` | {RULES[state].says} |" in (ROOT / "docs/repair-states.md").read_text()


def test_the_diagram_shows_every_move_once() -> None:
    lines = [line for line in mermaid().splitlines() if "-->" in line and "[*]" not in line]
    assert len(lines) == len(set(lines)) == len(TRANSITIONS) + len(HELD_FROM - {S.DRAINING}) + 2
