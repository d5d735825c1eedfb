"""What daytwo did to a node under repair is no foreign act, also where the sender died before it wrote that down."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.seams import Ownership
from daytwo.intake import observe_facts
from daytwo.store.tables import IntentRow, NodeRow
from tests.intake.conftest import NOW
from tests.rows import a_repair, keep

REPAIR = "r-20261130-120000-aaaaa"
LATER = NOW + timedelta(minutes=2)
OURS = {"ownership": Ownership.OURS, "drained_by": "ours", "mark_repair_id": REPAIR}


def an_intent(kind: str, **fields: Any) -> IntentRow:
    values = {"id": f"{REPAIR}/{kind}", "repair_id": REPAIR, "cluster": "east", "node": "gpu-01", "driver": "test"}
    times = {"created_at": NOW, "updated_at": NOW, "state": "proven", "tries": 1}
    return IntentRow(**values | times | {"kind": kind, "target": "gpu-01", "act": {}} | fields)


def foreign(intake: Any, after: dict[str, Any], *intents: IntentRow) -> bool:
    """Whether the second answer of the scheduler tells of somebody else's act."""
    keep(intake.store, a_repair(REPAIR, node="gpu-01", open_key="east/gpu-01"), *intents)
    observe_facts(intake.store, "east", [intake.facts("DRAIN", boot_time=NOW, **OURS)], now=NOW, restarted=False)
    second = intake.facts(**{"boot_time": NOW, "at": LATER} | after)
    observe_facts(intake.store, "east", [second], now=LATER, restarted=False)
    return "foreign-act" in [row.fault for row in intake.findings()]


BOOTED = {"boot_time": LATER, **OURS}
LIFTED: dict[str, Any] = {}


@pytest.mark.parametrize(("after", "kind"), [(BOOTED, "power-cycle"), (BOOTED, "reboot"), (LIFTED, "undrain")])
@pytest.mark.parametrize("written", [{"sent_at": LATER}, {"deadline": LATER}])
def test_an_act_of_ours_is_known_as_ours(
    intake: Any, after: dict[str, Any], kind: str, written: dict[str, Any]
) -> None:
    assert not foreign(intake, after, an_intent(kind, **written))


@pytest.mark.parametrize(("after", "kind"), [(BOOTED, "drain"), (LIFTED, "power-cycle")])
def test_another_act_of_ours_does_not_cover_it(intake: Any, after: dict[str, Any], kind: str) -> None:
    assert foreign(intake, after, an_intent(kind, sent_at=LATER))


@pytest.mark.parametrize("written", [{"sent_at": NOW - timedelta(hours=1)}, {"deadline": NOW - timedelta(hours=1)}, {}])
def test_an_act_of_ours_long_before_does_not_cover_it(intake: Any, written: dict[str, Any]) -> None:
    assert foreign(intake, BOOTED, an_intent("power-cycle", **written))


CLOCKS = [
    ("boot-1", LATER + timedelta(seconds=1), 0.0, False),
    ("boot-1", LATER - timedelta(seconds=1), 0.0, True),
    ("boot-2", LATER + timedelta(seconds=1), 0.0, True),
    (None, LATER + timedelta(seconds=1), 0.0, True),
    ("boot-1", NOW + timedelta(seconds=1), 3600.0, False),
]


@pytest.mark.parametrize(("boot_id", "heard_at", "skew", "is_a_boot"), CLOCKS)
def test_a_boot_time_that_moves_while_the_agent_speaks_on_is_a_clock_that_was_set(
    intake: Any, boot_id: str | None, heard_at: Any, skew: float, is_a_boot: bool
) -> None:
    with intake.store.write() as session:
        row = session.get_one(NodeRow, ("east", "gpu-01"))
        row.boot_id, row.last_heard_at, row.clock_skew_seconds = boot_id, heard_at, skew
    assert foreign(intake, BOOTED) is is_a_boot
