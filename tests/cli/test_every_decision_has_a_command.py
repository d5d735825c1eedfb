"""hold, release, retry, return, remove, hand-over; and a repair that a person asks for."""

from __future__ import annotations

import pytest

from daytwo.domain.policy import Person
from daytwo.domain.repair_states import HELD_FROM
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow
from tests.cli.conftest import ME, Cli, decisions
from tests.rows import REPAIR, a_definition, a_node, a_policy


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("hold", "hold"),
        ("release", "release"),
        ("retry", "retry"),
        ("return", "return-after-tests"),
        ("remove", "remove"),
        ("hand-over", "hand-over"),
    ],
)
def test_every_kind_of_decision_has_a_command(cli: Cli, fleet: Store, command: str, kind: str) -> None:
    done = cli("repairs", command, REPAIR, "--revision", "2", "--reason", "seen")
    assert (done.code, [row.kind for row in decisions(fleet)]) == (0, [kind])


def test_help_names_the_states_that_take_a_hold(cli: Cli) -> None:
    said = cli("repairs", "hold", "--help").out
    assert [state for state in HELD_FROM if state not in said] == []


def test_a_person_asks_for_a_repair_and_is_told_where_it_is(cli: Cli, fleet: Store) -> None:
    definition = a_definition(policy=a_policy(people=(Person(name="me", roles=("lead",), identities=(ME,)),)))
    with fleet.write() as session:
        session.get_one(ClusterRow, "east").definition = definition.model_dump(mode="json")
        session.add(a_node("gpu-08"))
    done = cli("nodes", "repair", "gpu-08", "--action", "reboot", "--reason", "new firmware")
    assert (done.code, done.out.partition("  ")[2]) == (0, "reboot of east/gpu-08\n")
    assert "Next: daytwo repairs show r-" in done.err


def test_a_repair_that_is_asked_for_needs_a_reason(cli: Cli) -> None:
    assert cli("nodes", "repair", "gpu-07", "--action", "reboot").code == 2
