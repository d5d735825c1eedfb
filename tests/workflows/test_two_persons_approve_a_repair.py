"""An action that needs two persons, through the whole plane."""

from __future__ import annotations

from daytwo.domain.policy import Approval, Person
from daytwo.domain.vocabulary import Action, Channel, DecisionKind, State
from daytwo.service.decisions import Identity
from tests.workflows.plane import LEAD, Plane
from tests.workflows.rules import other_rules

BEN = Identity(actor="cli:ben", channel=Channel.CLI, verified=True)
TWO = Approval(
    people=tuple(Person(name=name, roles=("lead",), identities=(f"cli:{name}",)) for name in ("ann", "ben")),
    two_person=(Action.REMOVE,),
)


async def approved(plane: Plane, node: str, who: Identity) -> str:
    decision = await plane.decide(node, DecisionKind.APPROVE, who, action=Action.REMOVE)
    return (await plane.ended(decision)).status


async def test_a_proposal_waits_for_a_second_person_and_then_goes_its_way(plane: Plane) -> None:
    async with other_rules(plane, approval=TWO):
        node = await plane.broken("xid-119")
        await plane.proposed(node)
        assert await approved(plane, node, LEAD) == "counted"
        await plane.until(lambda: "second person" in plane.repair(node).waiting_for, "it says what it waits for")
        assert await approved(plane, node, BEN) == "accepted"
        await plane.in_state(node, State.REMOVED, seconds=60)
    assert plane.events(node)[:4] == ["revised", "approved", "not-authorised", "approved"]
