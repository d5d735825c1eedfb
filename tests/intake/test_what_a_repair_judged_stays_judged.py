"""After a repair, old records say nothing new; a new fault is a relapse at once."""

from __future__ import annotations

from typing import Any

import pytest

from daytwo.intake import Effect


def kernel(intake: Any, kernel_sequence: int, boot_id: str = "boot-1", **fields: Any) -> Any:
    return intake.observation(boot_id=boot_id, kernel_sequence=kernel_sequence, **fields)


@pytest.fixture
def repaired(intake: Any) -> Any:
    """Xid 79 in boot 1, a repair that booted the node, and the new boot heard of."""
    intake.send(kernel(intake, 100), kernel(intake, 104, fault="xid-154"))
    intake.close_repair(boot_id="boot-2")
    return intake


@pytest.mark.parametrize("kernel_sequence", [50, 100, 101, 999])
def test_old_kernel_lines_fire_nothing(repaired: Any, kernel_sequence: int) -> None:
    repaired.send(kernel(repaired, kernel_sequence))
    assert {row.status for row in repaired.findings()} == {"cleared"}


def test_another_fault_of_the_judged_boot_fires_nothing(repaired: Any) -> None:
    assert repaired.send(kernel(repaired, 102, fault="xid-45")) == (Effect.RECORDED,)
    assert len(repaired.findings()) == 2


def test_the_same_fault_in_the_new_boot_is_a_relapse(repaired: Any) -> None:
    assert repaired.send(kernel(repaired, 3, "boot-2")) == (Effect.FIRED,)


def test_a_boot_that_no_repair_has_seen_still_counts(repaired: Any) -> None:
    assert repaired.send(kernel(repaired, 3, "boot-between")) == (Effect.FIRED,)


def test_a_reading_after_the_repair_is_a_relapse(repaired: Any) -> None:
    assert repaired.send(repaired.observation(boot_id="boot-2")) == (Effect.FIRED,)


@pytest.mark.parametrize(("kernel_sequence", "effect"), [(99, Effect.RECORDED), (101, Effect.FIRED)])
def test_within_one_boot_the_kernel_log_is_judged_up_to_its_last_record(
    intake: Any, kernel_sequence: int, effect: Effect
) -> None:
    intake.send(intake.observation(boot_id="boot-1"))
    intake.send(kernel(intake, 100))
    intake.close_repair(boot_id="boot-1")
    assert intake.send(kernel(intake, kernel_sequence)) == (effect,)


def test_a_late_record_of_the_stream_does_not_undo_a_repair(intake: Any) -> None:
    intake.send(intake.observation(5))
    intake.close_repair()
    assert intake.send(intake.observation(3)) == (Effect.RECORDED,)
    assert intake.send(intake.observation(6)) == (Effect.FIRED,)
