"""The table from facts to a node's state, a row at a time and where two rows meet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from daytwo.domain.node_states import TABLE, NodeLook, node_state
from daytwo.domain.reference import node_states_page
from daytwo.domain.seams import Ownership
from daytwo.domain.vocabulary import NodeState, State
from tests.builders import NOW, node_facts

ROOT = Path(__file__).parents[2]
N = NodeState
PERSON = node_facts("DRAIN", drained_by="person", ownership=Ownership.FOREIGN, reason="disk swap", reason_by="bob")
OURS = node_facts("DRAIN", drained_by="ours", ownership=Ownership.OURS)


def look(**fields: Any) -> NodeLook:
    values: dict[str, Any] = {"repair_state": None, "firing": (), "facts": node_facts(), "last_heard_at": NOW}
    return NodeLook(**values | {"silent_after_seconds": 180, "now": NOW} | fields)


CASES = [
    ({}, N.HEALTHY),
    ({"repair_state": "opening"}, N.PENDING),
    ({"repair_state": State.PROPOSED}, N.PENDING),
    ({"repair_state": State.APPROVED}, N.PENDING),
    ({"repair_state": State.QUARANTINING}, N.PENDING),
    ({"repair_state": State.WAITING, "facts": OURS}, N.PENDING),
    ({"repair_state": State.DRAINING, "facts": OURS, "firing": ("xid-79",)}, N.PENDING),
    ({"repair_state": State.ACTING, "facts": None}, N.BOOTING),
    ({"repair_state": State.VERIFYING}, N.BOOTING),
    ({"repair_state": State.ACTING, "leaves": True}, N.PAUSED),
    ({"repair_state": State.WAITING, "leaves": True}, N.PENDING),
    ({"repair_state": State.VERIFYING, "leaves": True}, N.BOOTING),
    ({"repair_state": State.REJOINING}, N.BOOTING),
    ({"repair_state": State.ACTING, "last_heard_at": NOW - timedelta(hours=1)}, N.BOOTING),
    ({"repair_state": State.NEEDS_HELP}, N.UNHEALTHY),
    ({"repair_state": State.HELD}, N.PAUSED),
    ({"repair_state": State.PROPOSED, "held": "held by cli:ann: bench"}, N.PAUSED),
    ({"repair_state": State.ACTING, "held": "held by cli:ann: bench"}, N.BOOTING),
    ({"given_away": "removed with r-1", "facts": OURS, "firing": ("xid-79",)}, N.PAUSED),
    ({"facts": PERSON}, N.PAUSED),
    ({"facts": PERSON, "firing": ("xid-79",)}, N.PAUSED),
    ({"facts": PERSON, "repair_state": State.PROPOSED}, N.PAUSED),
    ({"facts": PERSON, "repair_state": State.NEEDS_HELP}, N.UNHEALTHY),
    ({"facts": node_facts("MAINT", ownership=Ownership.FOREIGN)}, N.PAUSED),
    ({"facts": node_facts("REBOOT_ISSUED", rebooting=True)}, N.BOOTING),
    ({"facts": node_facts(planned="anna has reserved it"), "repair_state": State.PROPOSED}, N.PAUSED),
    ({"facts": node_facts("IDLE", "POWERED_DOWN"), "last_heard_at": None}, N.PAUSED),
    ({"firing": ("xid-79",)}, N.UNHEALTHY),
    ({"firing": ("xid-79",), "facts": None}, N.UNHEALTHY),
    ({"facts": node_facts("DRAIN", drained_by="scheduler", ownership=Ownership.FOREIGN)}, N.UNHEALTHY),
    ({"facts": None}, N.UNKNOWN),
    ({"last_heard_at": None}, N.UNKNOWN),
    ({"last_heard_at": NOW - timedelta(seconds=180)}, N.HEALTHY),
    ({"last_heard_at": NOW - timedelta(seconds=181)}, N.UNKNOWN),
    ({"last_heard_at": None, "expects_agent": False}, N.HEALTHY),
    ({"facts": node_facts("DOWN", responding=False)}, N.UNKNOWN),
]


@pytest.mark.parametrize(("fields", "state"), CASES, ids=range(len(CASES)))
def test_facts_lead_to_a_state(fields: dict[str, Any], state: NodeState) -> None:
    assert node_state(look(**fields))[0] is state


def test_every_row_of_the_table_decides_some_case() -> None:
    decided = {next(row.when for row in TABLE if row.holds(look(**fields))) for fields, _ in CASES}
    assert decided == {row.when for row in TABLE}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"repair_state": State.WAITING, "repair_id": "r-1"}, "repair r-1 is waiting"),
        ({"facts": PERSON}, "bob has taken the node: disk swap"),
        ({"firing": ("xid-79", "xid-48")}, "firing: xid-79, xid-48"),
        ({"recorded": ("xid-94",)}, "heard of, xid-94 is only recorded, open for work"),
        ({"recorded": ("xid-13", "xid-31")}, "heard of, xid-13, xid-31 are only recorded, open for work"),
        ({"facts": OURS}, "heard of, nothing fires; daytwo's marks come off"),
        ({"last_heard_at": NOW - timedelta(hours=1)}, "nothing heard from its agent since 2026-11-30 13:21:00Z"),
        (
            {"facts": node_facts("DRAIN", drained_by="scheduler", reason="gres/gpu")},
            "drained by the scheduler: gres/gpu",
        ),
    ],
    ids=["repair", "person", "firing", "recorded", "two-recorded", "marked", "silent", "scheduler"],
)
def test_the_reason_is_said(fields: dict[str, Any], why: str) -> None:
    assert node_state(look(**fields))[1] == why


def test_the_page_shows_the_table() -> None:
    assert (ROOT / "docs/node-states.md").read_text() == node_states_page()
