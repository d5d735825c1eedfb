"""approve: for which moment and which action, and what it takes to approve another one."""

from __future__ import annotations

import pytest

from daytwo.store.engine import Store
from daytwo.store.tables import RepairRow
from tests.cli.conftest import APPROVE, REMOVE, Cli, decisions
from tests.rows import REPAIR
from tests.serving import Repairer


def test_an_approval_waits_until_it_is_accepted(cli: Cli, fleet: Store) -> None:
    done = cli(*APPROVE, "--revision", "2", "--moment", "when-idle", "--reason", "job is dead")
    assert (done.code, done.out) == (0, f"accepted: approve {REPAIR} revision 2: reboot when its jobs have ended\n")
    row = decisions(fleet)[0]
    assert (row.kind, row.moment, row.reason, row.action) == ("approve", "when-idle", "job is dead", None)


@pytest.mark.parametrize(("proposed", "given"), [("now", ()), ("when-idle", ()), ("when-idle", ("--moment", "now"))])
def test_an_approval_is_for_the_proposed_moment_unless_it_names_another(
    cli: Cli, fleet: Store, proposed: str, given: tuple[str, ...]
) -> None:
    with fleet.write() as session:
        repair = session.get_one(RepairRow, REPAIR)
        repair.proposal = {**(repair.proposal or {}), "moment": proposed}
    for _ in range(2):
        cli(*APPROVE, "--revision", "2", "--request-id", "ticket-4711", *given)
    assert [row.moment for row in decisions(fleet)] == ["now" if given else proposed]


def test_another_action_can_be_approved_with_a_reason_and_is_named(cli: Cli, fleet: Store) -> None:
    done = cli(*APPROVE, "--revision", "2", "--action", "power-cycle", "--reason", "it hangs")
    assert decisions(fleet)[0].action == "power-cycle"
    assert done.out == f"accepted: approve {REPAIR} revision 2: power-cycle\n"
    assert "approve power-cycle revision 2 by" in cli("repairs", "show", REPAIR).out


def test_another_action_without_a_reason_is_not_approved(cli: Cli, fleet: Store) -> None:
    done = cli(*APPROVE, "--revision", "2", "--action", "power-cycle")
    assert (done.code, decisions(fleet)) == (2, [])
    assert "reason: found nothing; to approve power-cycle where reboot is proposed needs a sentence" in done.err


def test_the_proposed_action_may_be_named_without_a_reason(cli: Cli) -> None:
    assert cli(*APPROVE, "--revision", "2", "--action", "reboot").code == 0


def test_an_action_that_nobody_proposed_and_that_is_hard_to_undo_needs_a_yes(cli: Cli, fleet: Store) -> None:
    done = cli(*REMOVE)
    assert (done.code, decisions(fleet)) == (2, [])
    assert "Missing option '--yes': remove is not what is proposed (reboot): the node is taken out for good" in done.err


def test_with_a_yes_it_is_approved_and_the_answer_says_what_it_means(cli: Cli, fleet: Store) -> None:
    done = cli(*REMOVE, "--yes")
    assert (done.code, decisions(fleet)[0].action) == (0, "remove")
    assert "It means: the node is taken out for good and stays drained" in done.err


def test_an_action_that_is_proposed_needs_no_further_yes(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        repair = session.get_one(RepairRow, REPAIR)
        repair.proposal = {**(repair.proposal or {}), "action": "remove"}
    assert cli(*REMOVE).code == 0


def test_a_first_of_two_approvals_ends_well_and_says_what_is_missing(cli: Cli, repairer: Repairer) -> None:
    repairer.status, repairer.why = "counted", "reboot needs a second person besides Lea"
    done = cli(*APPROVE, "--revision", "2")
    assert (done.code, "needs a second person" in done.out) == (0, True)
    assert "Nothing is done until somebody else approves too" in done.err


def test_the_same_request_id_is_one_decision(cli: Cli, fleet: Store) -> None:
    for _ in range(2):
        cli(*APPROVE, "--revision", "2", "--request-id", "ticket-4711")
    assert len(decisions(fleet)) == 1
