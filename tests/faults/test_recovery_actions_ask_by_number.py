"""What the driver asks is read from the number, and goes before the catalogue's own advice."""

from __future__ import annotations

import pytest

from daytwo.faults.catalogue import catalogue
from daytwo.faults.model import Action
from daytwo.faults.recovery import asked, recovery


@pytest.mark.parametrize(
    ("number", "action", "new_work_fails"),
    [
        (0, None, False),
        (1, Action.RESET_GPU, True),
        (2, Action.REBOOT, True),
        (3, Action.INSPECT, False),
        (4, Action.RESET_GPU, True),
        (5, Action.INSPECT, False),
        (6, Action.INSPECT, False),
        (None, Action.INSPECT, False),
    ],
)
@pytest.mark.parametrize("fault_id", ["recovery-action", "xid-154"])
def test_the_number_decides_what_is_done_and_whether_new_work_fails(
    fault_id: str, number: int | None, action: Action | None, new_work_fails: bool
) -> None:
    fault = asked(catalogue().get(fault_id), number)
    assert (fault.id, fault.first_action, fault.new_work_fails) == (fault_id, action, new_work_fails)


def test_an_unknown_number_is_kept_for_the_person_who_is_asked() -> None:
    assert (recovery(42).number, recovery(42).name) == (42, "something that is not known")


@pytest.mark.parametrize("number", range(6))
def test_a_known_number_is_named(number: int) -> None:
    assert recovery(number).number == number
