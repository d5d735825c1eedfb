"""Whoever reaches Temporal can send a repair any decision's id: another's, one that is over, one that never was."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.authorise import AuthoriseActivities
from daytwo.domain.exchange import AuthoriseInput, Verdict
from daytwo.domain.vocabulary import Action, State
from daytwo.store.engine import Store
from daytwo.store.tables import NodeRow
from tests.approvals.conftest import REF, Court, a_court
from tests.builders import NOW
from tests.rows import a_node, a_repair, keep

OTHER = "r-20261130-150000-bbbbb"


async def judged(court: Court, ident: str, **about: object) -> Verdict:
    """What `authorise` says to a decision that comes to the repair at revision 3."""
    usual = {"state": State.PROPOSED, "revision": 3, "disturbed": True, "interrupted": True}
    asked = {"ref": REF, "decision_id": ident, "proposed_action": Action.POWER_CYCLE}
    return await AuthoriseActivities(court.world).authorise(AuthoriseInput.model_validate(asked | usual | about))


@pytest.fixture
def court(store: Store, tmp_path: Path) -> Court:
    return a_court(store, tmp_path)


@pytest.mark.parametrize("kind", ["hold", "dismiss", "approve"])
async def test_a_decision_on_another_repair_stays_what_it_is(court: Court, kind: str) -> None:
    keep(court.store, a_node("gpu-08"), a_repair(OTHER, node="gpu-08", open_key="east/gpu-08"))
    ident = court.written("cli:lea", kind, repair_id=OTHER)
    verdict = await judged(court, ident)
    assert (verdict.status, court.row(ident).status) == ("void", "pending")


async def test_an_id_of_no_decision_is_void_and_ends_no_repair(court: Court) -> None:
    verdict = await judged(court, "d-forged")
    assert (verdict.status, verdict.why) == ("void", "decision: found 'd-forged', which is not in the store")


@pytest.mark.parametrize("kind", ["approve", "retry", "return-after-tests", "remove", "release"])
async def test_a_decision_that_was_accepted_at_an_older_revision_is_not_accepted_again(court: Court, kind: str) -> None:
    ident = court.written("cli:lea", kind, status="accepted", status_reason="x")
    verdict = await judged(court, ident, state=State.PROPOSED if kind == "approve" else State.NEEDS_HELP)
    assert (verdict.status, court.row(ident).status) == ("void", "accepted")


async def test_an_approval_that_was_used_is_not_used_again_at_its_own_revision(court: Court) -> None:
    ident = court.written("cli:lea", status="accepted")
    assert (await judged(court, ident, revision=2, disturbed=False)).status == "void"


async def test_a_try_again_of_the_last_word_gives_the_same_answer(court: Court) -> None:
    ident = court.written("cli:lea", status="accepted")
    verdict = await judged(court, ident, revision=2, state=State.APPROVED, deciding=ident)
    assert verdict.status == "accepted"


@pytest.mark.parametrize("action", ["inspect", "tell-owner"])
async def test_a_node_to_which_something_was_done_is_not_given_back_with_a_note(court: Court, action: str) -> None:
    ident = court.written("cli:lea", action=action, revision=3)
    verdict = await judged(court, ident, state=State.APPROVED, deciding=ident)
    assert (verdict.status, "something was done to the node" in verdict.why) == ("refused", True)


async def test_root_of_the_machine_is_no_second_person(store: Store, tmp_path: Path) -> None:
    court = a_court(store, tmp_path, two_person=(Action.REBOOT,))
    await court.approved("cli:lea")
    verdict = await court.approved("cli:root")
    assert (verdict.status, "cli:root" in verdict.why) == ("refused", True)


async def test_no_act_on_a_node_that_left_its_cluster_is_approved(court: Court) -> None:
    with court.store.write() as session:
        session.get_one(NodeRow, ("east", "gpu-07")).left_at = NOW
    verdict = await court.approved("cli:lea", action="power-cycle")
    assert (verdict.status, "no longer in the definition of east" in verdict.why) == ("refused", True)


@pytest.mark.parametrize(
    ("state", "instead"), [(State.PROPOSED, "--action verify only tests"), (State.DRAINING, "let it end")]
)
async def test_a_dismissal_after_work_was_interrupted_says_what_can_be_done_instead(
    court: Court, state: State, instead: str
) -> None:
    verdict = await judged(court, court.written("cli:lea", "dismiss"), state=state, revision=2)
    assert (verdict.status, instead in verdict.why) == ("refused", True)
