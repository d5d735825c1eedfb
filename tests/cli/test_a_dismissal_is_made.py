"""dismiss: its reason, its snooze, and what it says of the marks on the node."""

from __future__ import annotations

from datetime import timedelta

import pytest

from daytwo.store.engine import Store
from daytwo.store.tables import IntentRow, RepairRow
from tests.builders import NOW
from tests.cli.conftest import Cli, decisions
from tests.rows import REPAIR, keep


def test_a_dismissal_carries_reason_and_snooze(cli: Cli, fleet: Store) -> None:
    done = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known", "--snooze", "7d")
    row = decisions(fleet)[0]
    assert (done.code, row.kind, row.reason, row.snooze_seconds) == (0, "dismiss", "known", 7 * 86400)


@pytest.mark.parametrize(
    ("acts", "says"),
    [
        ((), "This repair has put nothing on the node"),
        (("reserve", "drain"), "What daytwo put on the node is being lifted"),
        (
            ("reserve", "drain", "undrain", "unreserve"),
            "What daytwo put on the node is lifted: it takes new work again",
        ),
    ],
    ids=["nothing was put", "not lifted yet", "lifted"],
)
def test_a_dismissal_says_what_becomes_of_the_marks(cli: Cli, fleet: Store, acts: tuple[str, ...], says: str) -> None:
    of = {"repair_id": REPAIR, "cluster": "east", "node": "gpu-07", "driver": "slurm", "state": "proven"}
    for number, kind in enumerate(acts):
        at = NOW + timedelta(seconds=number)
        keep(fleet, IntentRow(id=f"i-{kind}", kind=kind, target="gpu-07", created_at=at, updated_at=at, **of))
    done = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known")
    assert says in done.err
    assert "Nobody is asked about the same fault again for as long as the policy snoozes" in done.err


def test_a_dismissal_of_a_persons_wish_promises_no_quiet(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).fault = "asked"
    err = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known").err
    assert ("Nobody is asked" in err, "whoever asks again is heard" in err) == (False, True)


def test_a_dismissal_after_something_was_done_says_that_work_stays_off(cli: Cli, fleet: Store) -> None:
    with fleet.write() as session:
        session.get_one(RepairRow, REPAIR).disturbed = True
    done = cli("repairs", "dismiss", REPAIR, "--revision", "2", "--reason", "known")
    assert ("new work stays off it" in done.err, "takes new work again" in done.err) == (True, False)
