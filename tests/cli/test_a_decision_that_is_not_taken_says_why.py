"""A decision that its repair refuses, or does not take in time: what is in its way."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo.store.engine import Store
from daytwo.store.tables import FreezeRow, LeaseRow, RepairRow
from tests.builders import NOW
from tests.cli.conftest import APPROVE, Cli, decisions
from tests.rows import REPAIR, keep
from tests.serving import Repairer


@pytest.mark.parametrize(("status", "code"), [("refused", 4), ("void", 5)])
def test_a_decision_that_does_not_hold_says_why(cli: Cli, repairer: Repairer, status: str, code: int) -> None:
    repairer.status, repairer.why = status, "cluster east is frozen"
    done = cli(*APPROVE, "--revision", "2")
    assert (done.code, done.out) == (code, "")
    assert f"{status}: approve {REPAIR} revision 2 (cluster east is frozen)" in done.err


def test_a_void_decision_says_what_the_repair_takes(cli: Cli, repairer: Repairer) -> None:
    repairer.status, repairer.why = "void", "a repair that is proposed does not take return-after-tests"
    err = cli("repairs", "return", REPAIR, "--revision", "2").err
    assert f"void: return {REPAIR} revision 2 (a repair that is proposed does not take return)" in err
    assert "It is proposed and takes approve, dismiss, hold." in err


def test_a_decision_that_nobody_takes_times_out_and_is_kept(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    done = cli(*APPROVE, "--revision", "2", "--timeout", "1s")
    assert (done.code, decisions(fleet)[0].status) == (6, "pending")
    assert "will be delivered. Its repair has not answered; it is asked again" in done.err


@pytest.mark.parametrize(
    ("fields", "says"),
    [({"missing_since": NOW}, "It waits: its workflow is gone"), ({"waiting_for": "a budget"}, "It waits: a budget")],
)
def test_a_decision_that_nobody_takes_says_what_is_known_to_be_in_its_way(
    cli: Cli, repairer: Repairer, fleet: Store, fields: dict[str, Any], says: str
) -> None:
    repairer.status = None
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).sqlmodel_update(fields)
    assert says in cli(*APPROVE, "--revision", "2", "--timeout", "1s").err


def test_an_approval_that_is_not_taken_says_what_it_waits_for(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).waiting_for = "cluster east is frozen"
    err = cli(*APPROVE, "--revision", "2", "--timeout", "1s").err
    assert "It waits: cluster east is frozen." in err


def test_a_decision_that_waits_for_a_part_that_is_away_names_it(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    keep(fleet, LeaseRow(name="reconcile", holder="here:1", expires_at=NOW, stepped_at=NOW))
    assert "will be delivered. Away: controller" in cli(*APPROVE, "--revision", "2", "--timeout", "1s").err


def test_an_approval_of_a_frozen_node_is_recorded_and_not_waited_for(
    cli: Cli, repairer: Repairer, fleet: Store
) -> None:
    repairer.status = None
    keep(fleet, FreezeRow(scope="east", reason="storm", actor="cli:lea", at=NOW))
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = "approved"
    done = cli(*APPROVE, "--revision", "2", "--timeout", "30s")
    said = f"recorded: approve {REPAIR} revision 2: reboot; waits: frozen by cli:lea: storm, until it is thawed\n"
    assert (done.code, done.out) == (0, said)


def test_a_hold_that_its_repair_does_not_take_says_so(cli: Cli, repairer: Repairer, fleet: Store) -> None:
    repairer.status = None
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).sqlmodel_update({"state": "acting", "waiting_for": "reboot is under way"})
    done = cli("repairs", "hold", REPAIR, "--revision", "2", "--timeout", "1s")
    assert "a repair that is acting does not take it: it takes no decision. You are told if" in done.err
