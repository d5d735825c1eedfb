"""From a kernel line to a returned node, on the whole plane."""

from __future__ import annotations

from daytwo.domain.vocabulary import DecisionKind, NodeState, State
from tests.workflows.plane import Plane

D = DecisionKind
S = State


async def test_a_node_with_xid_79_is_repaired_and_returns(plane: Plane) -> None:
    node = await plane.broken("xid-79")
    proposed = await plane.proposed(node)
    assert proposed.action == "reboot"
    await plane.decide(node, D.APPROVE)
    repair = await plane.in_state(node, S.SUCCEEDED, S.NEEDS_HELP, seconds=60)
    assert repair.state == S.SUCCEEDED, plane.story(node)
    assert plane.events(node) == [
        "revised",
        "approved",
        "authorised",
        "quarantined",
        "moment-came",
        "drained",
        "acted",
        "verified",
        "rejoined",
    ]
    assert plane.acts(node, "reboot") == 1
    assert not {"DRAIN", "DOWN"} & plane.scheduler_states(node)
    assert plane.evidence(node), "what the reboot took with it was collected before"
    await plane.until(lambda: plane.node(node).state == NodeState.HEALTHY, "healthy again")
