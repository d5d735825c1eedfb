"""Whose marks a new repair of a node takes over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.domain.exchange import RepairRef
from daytwo.left_marks import left_on
from daytwo.store.engine import Store
from tests.builders import NOW
from tests.rows import a_repair, keep

REF = RepairRef(repair_id="r-new", cluster="east", node="gpu-07")


def ended(store: Store, name: str, minute: int, **fields: Any) -> None:
    at = NOW + timedelta(minutes=minute)
    keep(store, a_repair(name, open_key=None, closed_at=at, **fields))


@pytest.mark.parametrize(
    ("last", "left"),
    [
        ({"state": "dismissed"}, ["r-2", "r-1"]),
        ({"state": "succeeded"}, ["r-2", "r-1"]),
        ({"state": "succeeded", "stamps": {"returned": NOW.isoformat()}}, []),
        ({"state": "removed", "node": "gpu-08"}, ["r-2", "r-1"]),
    ],
    ids=["dismissed since", "noted since", "returned since", "of another node"],
)
def test_they_are_those_since_the_node_returned_last(store: Store, last: dict[str, Any], left: list[str]) -> None:
    ended(store, "r-1", 1, state="removed")
    ended(store, "r-2", 2, state="handed-over")
    ended(store, "r-3", 3, **last)
    keep(store, a_repair(REF.repair_id))
    assert store.change(lambda session: left_on(session, REF)) == left
