"""People at the Temporal UI: claims without proof, garbage, and nothing at all. The repair always lives on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlmodel import select
from temporalio.client import WorkflowHandle

from daytwo.domain.vocabulary import DecisionKind, State
from daytwo.store.tables import DecisionRow
from tests.workflows.plane import Plane
from workflows import names

S = State


def handle_of(plane: Plane, node: str) -> WorkflowHandle[Any, Any]:
    return plane.client.get_workflow_handle(names.workflow_id("sim", node))


async def note_of(plane: Plane, node: str) -> str:
    run = await handle_of(plane, node).query(names.STATE_QUERY)
    return str(run["note"])


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("approve", [], "came without input"),
        ("approve", ["please"], "not an object"),
        ("approve", [{"who": "ann"}], "names no repair and revision"),
        ("approve", [{"repair": "r-20200101-000000-aaaaa", "revision": 1}], "what stands is repair"),
        ("aprove", [{}], "is not known"),
        ("dismiss", [b"\xff\xfe\x00"], "dismiss"),
    ],
)
async def test_a_signal_that_cannot_be_followed_is_shown_and_changes_nothing(
    plane: Plane, proposed_node: str, name: str, arguments: list[Any], says: str
) -> None:
    await handle_of(plane, proposed_node).signal(name, args=arguments)
    async with asyncio.timeout(30):
        while says not in await note_of(plane, proposed_node):
            await asyncio.sleep(0.1)  # a query is work for the worker too, which has the signal to read
    repair = plane.repair(proposed_node)
    assert repair is not None
    assert repair.state == S.PROPOSED


async def test_a_claimed_name_may_not_interrupt_work(plane: Plane, proposed_node: str) -> None:
    repair = plane.repair(proposed_node)
    assert repair is not None
    claim = {"repair": repair.id, "revision": repair.revision, "who": "root", "reason": "trust me"}
    await handle_of(plane, proposed_node).signal("approve", claim)

    def refused() -> bool:
        with plane.store.read() as session:
            mine = (DecisionRow.repair_id == repair.id, DecisionRow.channel == "temporal")
            rows = session.exec(select(DecisionRow).where(*mine)).all()
        return any(row.status == "refused" and "nothing proves" in row.status_reason for row in rows)

    await plane.until(refused, "the claim is refused")
    assert plane.acts(proposed_node, "reboot") == 0


async def test_a_claimed_dismissal_is_followed(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    repair = await plane.proposed(node)
    claim = {"repair": repair.id, "revision": repair.revision, "who": "ann", "reason": "known"}
    await handle_of(plane, node).signal("dismiss", claim)
    await plane.in_state(node, S.DISMISSED)


async def test_the_page_tells_what_is_wrong_and_the_command_that_approves(plane: Plane, proposed_node: str) -> None:
    repair = plane.repair(proposed_node)
    assert repair is not None
    metadata = await handle_of(plane, proposed_node).query("__temporal_workflow_metadata")
    page = metadata.current_details
    assert f"daytwo repairs approve {repair.id} --revision {repair.revision}" in page
    assert "temporal workflow signal" in page


async def test_a_decision_is_delivered_once_however_often_it_comes(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    ident = await plane.decide(node, DecisionKind.APPROVE)
    for attempt in range(3):
        with pytest.raises(Exception, match=r"."):
            await handle_of(plane, node).execute_update(names.DECIDE, ident, id=f"again-{attempt}")
    await plane.in_state(node, S.SUCCEEDED, seconds=60)
    assert plane.acts(node, "reboot") == 1


@pytest.fixture
async def proposed_node(plane: Plane) -> str:
    node = await plane.broken("xid-119")
    await plane.proposed(node)
    return node


async def test_words_that_change_nothing_do_not_end_what_is_being_waited_for(plane: Plane) -> None:
    node = await plane.broken("xid-119")
    await plane.approved(node)
    repair = await plane.in_state(node, S.VERIFYING, seconds=60)
    claim = {"repair": repair.id, "revision": repair.revision, "who": "ann", "reason": "is it done?"}
    for _ in range(30):
        await handle_of(plane, node).signal("approve", claim)
        await asyncio.sleep(0.02)
    await plane.in_state(node, S.SUCCEEDED, seconds=60)
