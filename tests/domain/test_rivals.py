"""Who else acts on a node of ours, and when that is a rival healer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.policy import Rivals
from daytwo.domain.rivals import ForeignAct, acts_between, rival
from daytwo.domain.seams import NodeFacts, Ownership
from tests.builders import NOW, node_facts

REPAIR = "r-20261130-142100-x7k2q"
BOOTED = NOW - timedelta(days=3)


def whole(**fields: Any) -> NodeFacts:
    values = {"ownership": Ownership.OURS, "mark_repair_id": REPAIR, "drained_by": "ours", "boot_time": BOOTED}
    return node_facts("IDLE", "DRAIN", **values | fields)


def free(**fields: Any) -> NodeFacts:
    return node_facts("IDLE", **{"boot_time": BOOTED} | fields)


def reserved(**fields: Any) -> NodeFacts:
    """A reboot through Slurm lifts the drain and leaves the reservation."""
    return whole(**{"ownership": Ownership.HALF_DONE, "drained_by": "nobody"} | fields)


def taken(**fields: Any) -> NodeFacts:
    values = {"ownership": Ownership.FOREIGN, "drained_by": "person", "reason": "NHC: gpu", "reason_by": "nhc"}
    return node_facts("IDLE", "DRAIN", **values | {"boot_time": BOOTED} | fields)


def scheduler_over_ours() -> NodeFacts:
    """24.11 writes its own reason over ours when a node comes back with a GPU too few."""
    return whole(ownership=Ownership.HALF_DONE, drained_by="scheduler", reason="gres/gpu count reported lower")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (whole(), free(), "somebody took our marks off"),
        (whole(), whole(ownership=Ownership.HALF_DONE), "somebody took our marks off"),
        (whole(), taken(), "nhc drained it over our marks: NHC: gpu"),
        (free(), taken(), "nhc drained it: NHC: gpu"),
        (taken(), free(), "somebody resumed it: NHC: gpu"),
        (
            whole(),
            whole(mark_repair_id="r-20261130-150000-abcde", reason="daytwo r-20261130-150000-abcde: x"),
            "another daytwo wrote over our marks: daytwo r-20261130-150000-abcde: x",
        ),
        (whole(), whole(boot_time=NOW), "somebody booted it"),
        (whole(), reserved(boot_time=NOW), "somebody booted it"),
        (whole(rebooting=True), reserved(), None),
        (whole(), reserved(rebooting=True), None),
        (whole(), reserved(), "somebody took our marks off"),
        (whole(), whole(boot_time=BOOTED + timedelta(seconds=2)), None),
        (whole(), whole(boot_time=None), None),
        (whole(), whole(), None),
        (free(), whole(), None),
        (free(), free(), None),
        (whole(), scheduler_over_ours(), None),
    ],
)
def test_an_act_of_another_is_told_with_what_the_scheduler_says_of_it(
    before: NodeFacts, after: NodeFacts, says: str | None
) -> None:
    assert [str(act) for act in acts_between(before, after, REPAIR)] == ([says] if says else [])


def test_a_boot_that_lost_our_marks_is_two_acts() -> None:
    assert len(acts_between(whole(), free(boot_time=NOW), REPAIR)) == 2


def acts(*hours_ago: float) -> list[ForeignAct]:
    return [ForeignAct(what="resumed it", at=NOW - timedelta(hours=hours)) for hours in hours_ago]


@pytest.mark.parametrize(
    ("hours_ago", "found"), [((), False), ((1,), False), ((2, 1), True), ((25, 1), False), ((25, 2, 1), True)]
)
def test_twice_in_its_window_is_a_rival(hours_ago: tuple[float, ...], found: bool) -> None:
    assert bool(rival(acts(*hours_ago), Rivals(), NOW)) is found


def test_a_rival_is_told_with_its_last_acts() -> None:
    assert rival(acts(2, 1), Rivals(), NOW) == (
        "another hand acts on this node too, 2 times in 24 h: "
        "2026-11-30 12:21:00Z somebody resumed it; 2026-11-30 13:21:00Z somebody resumed it"
    )
