"""Triage looks back for weeks, and longer for what still stands: a snooze, the marks of a removal."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from daytwo.store.engine import Store
from daytwo.store.situations import load_situation, node_row
from tests.builders import NOW
from tests.rows import a_cluster, a_definition, a_node, a_repair, keep

OLD = NOW - timedelta(days=29)


@pytest.mark.parametrize(
    ("ended", "known"),
    [
        ({"state": "succeeded", "closed_at": OLD}, False),
        ({"state": "succeeded", "closed_at": OLD + timedelta(days=2)}, True),
        ({"state": "removed", "closed_at": OLD}, True),
        ({"state": "handed-over", "closed_at": OLD}, True),
        ({"state": "dismissed", "closed_at": OLD, "snooze_until": NOW + timedelta(days=9)}, True),
        ({"state": "dismissed", "closed_at": OLD, "snooze_until": NOW - timedelta(days=9)}, False),
        ({"state": "held", "closed_at": None, "snooze_until": NOW + timedelta(days=9)}, False),
    ],
    ids=["old", "of these weeks", "removed", "handed over", "asleep", "awake again", "open"],
)
def test_what_an_old_repair_left_standing_is_known(store: Store, ended: dict[str, Any], known: bool) -> None:
    keep(store, a_cluster(), a_node(), a_repair(open_key=None, **ended))
    with store.read() as session:
        node, definition = node_row(session, "east", "gpu-07"), a_definition()
        found = load_situation(session, node, definition, policy_revision=1, facts=None, workloads=(), now=NOW)
    assert bool(found.history) is known
