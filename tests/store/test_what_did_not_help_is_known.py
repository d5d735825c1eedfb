"""The next look at a node knows what the tests said of the last act on it that did not help."""

from __future__ import annotations

import pytest

from daytwo.store.engine import Store
from daytwo.store.situations import load_situation, node_row
from tests.builders import NOW
from tests.rows import a_cluster, a_definition, a_node, a_repair, an_event, keep


@pytest.mark.parametrize(("disturbed", "failed"), [(True, "power-cycle did not help"), (False, "")])
def test_the_last_act_that_did_not_help_is_known_with_what_the_tests_said(
    store: Store, disturbed: bool, failed: str
) -> None:
    said = {1: "reboot did not help", 2: "power-cycle did not help"}
    events = [an_event(number, event="still-faulty", text=text) for number, text in said.items()]
    keep(store, a_cluster(), a_node(), a_repair(disturbed=disturbed), *events)
    with store.read() as session:
        node, definition = node_row(session, "east", "gpu-07"), a_definition()
        repair = load_situation(session, node, definition, policy_revision=1, facts=None, workloads=(), now=NOW)
    assert repair.open_repair is not None
    assert repair.open_repair.failed == failed
