"""Everything is judged anew, and what nobody knows is asked; no act is repeated, and none is lost silently."""

from __future__ import annotations

import pytest
from sqlmodel import col, select

from daytwo.domain.vocabulary import NOT_KNOWN, DecisionKind, State
from daytwo.service import freezes
from daytwo.store import audit
from daytwo.store.tables import AuditRow, IntentRow, RepairRow
from tests.restores.story import LONG, Story
from tests.workflows.plane import LEAD

pytestmark = pytest.mark.timeout(300)
D, S = DecisionKind, State


@pytest.fixture
async def settled(story: Story) -> Story:
    await story.settled()
    return story


async def test_a_proposal_that_nobody_has_answered_goes_on_as_it_was(settled: Story) -> None:
    repair = settled.plane.repair(settled["waits"])
    assert repair is not None
    assert (repair.state, repair.revision) == (S.PROPOSED, 1)


@pytest.mark.parametrize("what", ["succeeds-later", "opened-and-ended-later"])
async def test_a_repair_that_has_succeeded_since_is_not_made_again(settled: Story, what: str) -> None:
    node = settled[what]
    repair = await settled.plane.in_state(node, S.SUCCEEDED)
    assert repair.open_key is None
    assert settled.plane.acts(node, "reboot") == 1
    assert "firing" not in settled.plane.findings(node).values()
    assert settled.plane.events(node)[-1] == "rejoined"


async def test_a_repair_that_was_dismissed_since_stays_dismissed(settled: Story) -> None:
    repair = await settled.plane.in_state(settled["dismissed-later"], S.DISMISSED)
    assert repair.open_key is None


async def test_a_repair_that_has_come_to_ask_since_asks_what_it_asked(settled: Story) -> None:
    repair = await settled.plane.in_state(settled["acts"], S.NEEDS_HELP)
    assert "reboot is not proven" in repair.attention
    assert settled.plane.acts(settled["acts"], "reboot") == 1


async def test_an_act_that_may_have_been_sent_is_asked_about_and_not_repeated(settled: Story) -> None:
    node = settled["acts-later"]
    repair = await settled.plane.in_state(node, S.NEEDS_HELP)
    assert "the store was restored from a backup" in repair.attention
    assert settled.plane.acts(node, "reboot") == 1
    assert "sending" not in {state for _, state in settled.plane.intents(node)}
    with settled.plane.store.read() as session:
        reboots = select(IntentRow.proof_type).where(IntentRow.node == node, IntentRow.kind == "reboot")
        assert set(session.exec(reboots)) <= {NOT_KNOWN}


async def test_a_repair_that_the_store_had_forgotten_is_there_again(settled: Story) -> None:
    repair = await settled.plane.in_state(settled["opened-later"], S.PROPOSED)
    assert repair.proposal is not None
    assert repair.open_key == f"sim/{settled['opened-later']}"


async def test_what_nodes_had_said_since_is_said_again(settled: Story) -> None:
    plane, node = settled.plane, settled["opened-later"]
    await plane.until(lambda: plane.findings(node).get("xid-79") == "firing", "the agent has said it again", LONG)


async def test_everything_is_frozen_until_somebody_has_looked(settled: Story) -> None:
    assert settled.is_frozen()


async def test_the_audit_chain_is_whole_and_shows_the_restore(settled: Story) -> None:
    with settled.plane.store.read() as session:
        acts = session.exec(
            select(AuditRow.act).where(AuditRow.subject == "store").order_by(col(AuditRow.number))
        ).all()
        assert audit.verify(session).problem == ""
    assert list(acts) == ["backup", "restore", "settled"]


async def test_people_are_told_what_became_of_it(settled: Story) -> None:
    notices = (settled.plane.settings.state_dir / "notices.jsonl").read_text()
    assert "1 as it was, 1 asks, 3 ended since, 2 goes on" in notices


async def test_a_node_has_one_open_repair_at_most(settled: Story) -> None:
    with settled.plane.store.read() as session:
        keys = session.exec(select(RepairRow.open_key).where(col(RepairRow.open_key).is_not(None))).all()
    assert len(keys) == len(set(keys)) == 4


async def test_what_waited_is_approved_and_succeeds_once_it_is_thawed(settled: Story) -> None:
    plane, node = settled.plane, settled["waits"]
    freezes.thaw(plane.store, LEAD, "*", reason="looked", owner=LEAD.actor, now=settled.plane.repair(node).opened_at)
    await plane.approved(node)
    await plane.in_state(node, S.SUCCEEDED, seconds=LONG)
    assert plane.acts(node, "reboot") == 1


async def test_who_was_asked_decides_and_the_node_returns_after_tests(settled: Story) -> None:
    plane, node = settled.plane, settled["acts-later"]
    plane.lab.heal_node(node)
    await plane.until(lambda: "NOT_RESPONDING" not in plane.scheduler_states(node), "somebody repaired it")
    await plane.ended(await plane.decide(node, D.RETURN_AFTER_TESTS))
    await plane.in_state(node, S.SUCCEEDED, seconds=LONG)
    assert plane.acts(node, "reboot") == 1
