"""`daytwo repairs show` names the commands that answer a repair as it stands, and no other."""

from __future__ import annotations

import pytest

from daytwo.store.engine import Store
from daytwo.store.tables import RepairRow
from tests.cli.conftest import Cli
from tests.rows import REPAIR


@pytest.mark.parametrize(
    ("state", "verbs"),
    [
        ("proposed", ["approve", "dismiss", "hold"]),
        ("held", ["dismiss", "release"]),
        ("draining", ["dismiss", "hold"]),
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


def test_a_repair_that_is_not_proposed_shows_no_command_that_approves_it(fleet: Store, cli: Cli) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).state = "needs-help"
    assert "repairs approve" not in cli("repairs", "show", REPAIR).out
