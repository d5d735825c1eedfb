"""What keeps a repair from moving: told before somebody approves, when they do, and as it is when it is read."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo.domain.definition import NodeGroup
from daytwo.domain.repair_states import TERMINAL
from daytwo.domain.vocabulary import Action, State
from daytwo.domain.windows import Day, Window
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow, DecisionRow, FreezeRow, NodeRow, RepairRow
from tests.builders import NOW, node_facts
from tests.cli.conftest import Cli
from tests.rows import REPAIR, a_definition, a_node, a_policy, a_repair, an_event, keep

APPROVE = ("repairs", "approve", REPAIR, "--revision", "2")
OUT = "2 nodes are out (gpu-08, gpu-09); the budget of pool default allows 1"


def set_repair(store: Store, **fields: Any) -> None:
    with store.write() as session:
        row = session.get_one(RepairRow, REPAIR)
        for name, value in fields.items():
            setattr(row, name, value)


def facts(*states: str, **fields: Any) -> dict[str, Any]:
    return {"facts": node_facts(*states, **fields).model_dump(mode="json"), "facts_at": NOW}


@pytest.fixture
def used_up(fleet: Store) -> Store:
    """A pool of three, two of which are out."""
    keep(fleet, a_node("gpu-08", **facts("DOWN")), a_node("gpu-09", **facts("IDLE", "DRAIN", drained_by="person")))
    return fleet


def set_policy(store: Store, **fields: Any) -> None:
    policy = a_policy().model_copy(update=fields)
    definition = a_definition(groups=(NodeGroup(nodes=("gpu-07",)),), policy=policy)
    with store.write() as session:
        session.get_one(ClusterRow, "east").definition = definition.model_dump(mode="json")


def accepted(store: Store, kind: str, **fields: Any) -> None:
    values = {"id": "d-1", "request_id": "request-1", "repair_id": REPAIR, "revision": 2, "actor": "cli:lea"}
    ended = {"channel": "cli", "verified": True, "at": NOW, "status": "accepted", "ended_at": NOW}
    keep(store, DecisionRow(**values | ended | {"kind": kind} | fields))


def test_a_proposal_says_that_the_budget_would_make_its_approval_wait(cli: Cli, used_up: Store) -> None:
    assert f"Approved now, it would wait: {OUT}." in cli("repairs", "show", REPAIR).out


def test_an_approval_is_answered_with_what_it_waits_for(cli: Cli, used_up: Store) -> None:
    assert cli(*APPROVE).out == f"accepted: approve {REPAIR} revision 2: reboot; waits: {OUT}\n"


def test_nothing_in_the_way_is_not_told_as_waiting(cli: Cli) -> None:
    assert "would wait" not in cli("repairs", "show", REPAIR).out


def test_a_freeze_a_window_and_a_second_person_are_told_before_the_approval(cli: Cli, fleet: Store) -> None:
    never = Window(name="nights", days=tuple(Day), begins="00:00", ends="00:01")
    set_policy(fleet, windows=(never,), approval=a_policy(two_person=(Action.REBOOT,)).approval)
    keep(fleet, FreezeRow(scope="east", reason="storm", actor="cli:lea", at=NOW))
    shown = cli("repairs", "show", REPAIR).out
    assert (
        "it would wait: frozen by cli:lea: storm; a second person, for reboot needs two; waits for the window" in shown
    )


def test_an_act_that_touches_nothing_waits_for_no_budget(cli: Cli, used_up: Store) -> None:
    set_repair(used_up, action="inspect")
    assert "would wait" not in cli("repairs", "show", REPAIR).out


def test_what_is_waited_for_is_read_anew_and_not_as_it_was_written(cli: Cli, used_up: Store) -> None:
    set_repair(used_up, state="waiting", waiting_for="7 nodes are out; the budget of pool default allows 1")
    assert f"Waits: {OUT}" in cli("repairs", "show", REPAIR).out


def test_what_is_over_is_not_told_as_waited_for(cli: Cli, fleet: Store) -> None:
    set_repair(fleet, state="waiting", waiting_for="7 nodes are out; the budget of pool default allows 1")
    assert "Waits: nothing any more; it is looked at again within half a minute" in cli("repairs", "show", REPAIR).out


def test_what_only_the_scheduler_knows_is_told_as_it_was_written(cli: Cli, used_up: Store) -> None:
    set_repair(used_up, state="waiting", waiting_for="waits for others: it is reserved for maintenance")
    assert "Waits: for others: it is reserved for maintenance" in cli("repairs", "show", REPAIR).out


def test_an_approval_for_an_idle_node_says_that_its_jobs_have_not_ended(cli: Cli, fleet: Store) -> None:
    accepted(fleet, "approve", moment="when-idle")
    set_repair(fleet, state="waiting")
    assert "Waits: its jobs have not ended, and it was approved for when-idle" in cli("repairs", "show", REPAIR).out


@pytest.mark.parametrize(
    ("request_id", "says"),
    [("request-1", "bench\n"), ("node-hold-1", "bench (the whole node is: daytwo nodes release east/gpu-07)\n")],
)
def test_a_held_repair_says_who_holds_it(cli: Cli, fleet: Store, request_id: str, says: str) -> None:
    accepted(fleet, "hold", reason="bench", request_id=request_id)
    set_repair(fleet, state="held")
    assert f"Waits: held by cli:lea since 2026-11-30 14:21Z: {says}" in cli("repairs", "show", REPAIR).out


@pytest.mark.parametrize("state", ["opening", *(state for state in State if state not in TERMINAL)])
def test_every_state_says_what_happens_next(cli: Cli, fleet: Store, state: str) -> None:
    set_repair(fleet, state=state)
    head = cli("repairs", "show", REPAIR).out.split("\n\n")[0].splitlines()
    assert "since 2026-11-30 14:21:00Z" in head[0]
    assert head[-1].startswith("Next: ")


@pytest.mark.parametrize(("state", "whom"), [("proposed", "for an answer"), ("needs-help", "for somebody to decide")])
def test_what_waits_for_people_says_so(cli: Cli, fleet: Store, state: str, whom: str) -> None:
    set_repair(fleet, state=state)
    assert f"Waits: {whom}" in cli("repairs", "show", REPAIR).out


def test_a_repair_that_has_ended_waits_for_nothing(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.merge(a_repair(state="succeeded", open_key=None, outcome="the node takes work again"))
    head = cli("repairs", "show", REPAIR).out.split("\n\n")[0]
    assert ("Ended: the node takes work again" in head, "Waits" in head, "Next" in head) == (True, False, False)


def test_another_action_than_the_proposed_one_is_named_as_what_will_be_done(cli: Cli, fleet: Store) -> None:
    keep(fleet, an_event(1, event="approved", to_state="approved"))
    set_repair(fleet, state="waiting", action="power-cycle")
    assert "Approved: power-cycle, where reboot was proposed\n" in cli("repairs", "show", REPAIR).out


def test_an_approval_of_an_earlier_proposal_is_not_told_of_the_one_that_stands(cli: Cli, fleet: Store) -> None:
    keep(fleet, an_event(1, event="approved", to_state="approved"))
    keep(fleet, an_event(2, event="still-faulty", from_state="verifying"), an_event(3, event="held", to_state="held"))
    set_repair(fleet, state="held")
    assert "Approved" not in cli("repairs", "show", REPAIR).out.split("\n\n")[0]


def test_a_node_that_somebody_drained_is_not_told_to_take_new_jobs(cli: Cli, fleet: Store) -> None:
    drained = facts("IDLE", "DRAIN", drained_by="person", reason="fan swap", reason_by="bob")
    with fleet.write() as session:
        row = session.get_one(NodeRow, ("east", "gpu-07"))
        row.facts = drained["facts"]
    shown = cli("repairs", "show", REPAIR).out
    taken = "bob has taken the node: fan swap"
    assert f"takes no new jobs: {taken}\n" in shown
    assert f"it would wait: {taken}; nothing is done to it before that is lifted." in shown


def test_an_approval_that_cannot_go_on_says_so_at_once(cli: Cli, fleet: Store) -> None:
    set_repair(fleet, state="needs-help", attention="it carries another's mark")
    assert cli(*APPROVE).out.endswith(": reboot; needs help: it carries another's mark\n")


def test_who_follows_a_repair_is_told_what_it_waits_for(cli: Cli, used_up: Store) -> None:
    set_repair(used_up, state="waiting")
    assert f"It waits: {OUT}" in cli("repairs", "watch", REPAIR, "--timeout", "1s").err


def test_a_repair_whose_workflow_is_gone_says_so(cli: Cli, fleet: Store) -> None:
    set_repair(fleet, missing_since=NOW)
    said = "its workflow is gone from Temporal; it is looked for once more within 5 s, and then you are asked"
    assert f"Waits: {said}" in cli("repairs", "show", REPAIR).out
