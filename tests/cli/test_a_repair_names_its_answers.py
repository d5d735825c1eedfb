"""`daytwo repairs show` names the commands that answer a repair as it stands, and no other."""

from __future__ import annotations

import pytest

from daytwo.domain.vocabulary import NOT_KNOWN
from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, RepairRow
from tests.builders import NOW
from tests.cli.conftest import Cli
from tests.rows import REPAIR, keep


@pytest.mark.parametrize(
    ("state", "verbs"),
    [
        ("proposed", ["approve", "hold", "dismiss"]),
        ("held", ["release", "dismiss"]),
        ("draining", ["hold", "dismiss"]),
        ("acting", []),
        ("needs-help", ["retry", "return", "remove", "hand-over"]),
        ("succeeded", []),
    ],
)
def test_the_answers_are_those_of_its_state(fleet: Store, cli: Cli, state: str, verbs: list[str]) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = state
    shown = cli("repairs", "show", REPAIR).out
    commands = [line.split()[2] for line in shown.splitlines() if line.startswith("  daytwo repairs ")]
    assert commands == verbs


@pytest.mark.parametrize(("state", "verbs"), [("proposed", ["approve", "hold", "approve"]), ("draining", ["hold"])])
def test_a_repair_that_has_interrupted_work_is_tested_and_not_dismissed(
    fleet: Store, cli: Cli, state: str, verbs: list[str]
) -> None:
    of = {"repair_id": REPAIR, "cluster": "east", "node": "gpu-07", "created_at": NOW, "updated_at": NOW}
    keep(fleet, IntentRow(id="i-1", driver="slurm", kind="requeue", target="88213", state="proven", tries=1, **of))
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = state
    shown = cli("repairs", "show", REPAIR).out
    commands = [line.split()[2] for line in shown.splitlines() if line.startswith("  daytwo repairs ")]
    assert (commands, "--action verify" in shown) == (verbs, state == "proposed")


def test_an_act_of_which_a_restored_store_knows_nothing_is_not_said_to_have_failed(fleet: Store, cli: Cli) -> None:
    of = {"repair_id": REPAIR, "cluster": "east", "node": "gpu-07", "created_at": NOW, "updated_at": NOW}
    keep(
        fleet,
        IntentRow(id="i-1", driver="bmc", kind="reboot", target="gpu-07", state="failed", proof_type=NOT_KNOWN, **of),
    )
    assert "reboot gpu-07: unknown here" in cli("repairs", "show", REPAIR).out


def test_a_dismissal_after_something_was_done_says_that_it_asks_again(fleet: Store, cli: Cli) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).disturbed = True
    dismiss = next(line for line in cli("repairs", "show", REPAIR).out.splitlines() if "repairs dismiss" in line)
    assert dismiss.endswith("# something was done to the node: you are asked how it is to return")


def test_a_repair_that_is_not_proposed_shows_no_command_that_approves_it(fleet: Store, cli: Cli) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = "needs-help"
    assert "repairs approve" not in cli("repairs", "show", REPAIR).out
