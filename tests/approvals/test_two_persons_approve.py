"""Actions that need two persons: the first approval counts, the second completes it, nobody counts twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlmodel import select

from activities.two_persons import waits_for
from daytwo.domain.vocabulary import Action, State
from daytwo.store.engine import Store
from daytwo.store.tables import AuditRow
from tests.approvals.conftest import LEO, Court, a_court
from tests.rows import LEA, REPAIR, a_policy

POLICY = a_policy(people=(LEA, LEO), two_person=(Action.REBOOT,))


def waiting(court: Court) -> str:
    with court.store.read() as session:
        return waits_for(session, REPAIR, 2, POLICY, now=court.time[0])


async def test_a_first_approval_counts_and_says_that_it_needs_a_second_person(court: Court) -> None:
    ident = court.written("cli:lea")
    verdict = await court.judge(ident)
    assert (verdict.status, verdict.why) == ("counted", "reboot needs a second person besides Lea")
    assert court.row(ident).status == "counted"


async def test_what_waits_for_a_second_person_says_who_has_approved_and_until_when(court: Court) -> None:
    await court.approved("cli:lea")
    assert waiting(court) == ("needs a second person: cli:lea has approved, which holds until 2026-12-01 14:21Z")


async def test_the_same_answer_is_given_when_the_activity_is_tried_again(court: Court) -> None:
    ident = court.written("cli:lea")
    assert (await court.judge(ident)).status == (await court.judge(ident)).status == "counted"


async def test_a_second_person_completes_it_and_both_are_named(court: Court) -> None:
    await court.approved("cli:lea")
    verdict = await court.approved("cli:leo", reason="seen it")
    assert (verdict.status, verdict.reason) == ("accepted", "seen it; approved by Lea before")


async def test_both_approvals_are_in_the_audit(court: Court) -> None:
    await court.approved("cli:lea")
    await court.approved("cli:leo")
    with court.store.read() as session:
        rows = session.exec(select(AuditRow).order_by(AuditRow.number)).all()
    assert [(row.actor, row.act) for row in rows] == [
        ("cli:lea", "decision-counted"),
        ("cli:leo", "decision-accepted"),
    ]


async def test_one_person_does_not_count_twice_by_another_way_in(court: Court) -> None:
    await court.approved("cli:leo")
    verdict = await court.approved("slack:U7", channel="slack")
    assert (verdict.status, "approved already" in verdict.why) == ("refused", True)


async def test_two_approvals_of_different_actions_are_not_two_of_one(court: Court) -> None:
    await court.approved("cli:lea", action="remove")
    assert (await court.approved("cli:leo")).status == "counted"


async def test_a_first_approval_expires(court: Court) -> None:
    await court.approved("cli:lea")
    court.later(24 * 3600 + 1)
    assert (await court.approved("cli:leo")).status == "counted"


async def test_nothing_waits_for_a_second_person_once_the_first_has_expired(court: Court) -> None:
    await court.approved("cli:lea")
    court.later(24 * 3600 + 1)
    assert waiting(court) == ""


async def test_who_asked_for_a_repair_counts_as_none(store: Store, tmp_path: Path) -> None:
    court = a_court(store, tmp_path, repair={"opened_by": "cli:lea"}, two_person=(Action.REBOOT,))
    verdict = await court.approved("cli:lea")
    assert (verdict.status, "asked for this repair" in verdict.why) == ("refused", True)


@pytest.mark.parametrize(
    ("actor", "fields"),
    [
        ("policy", {"channel": "policy"}),
        ("cli:nobody", {}),
        ("temporal:lea", {"channel": "temporal", "verified": False}),
    ],
)
async def test_only_persons_whose_identity_is_proven_count(court: Court, actor: str, fields: dict[str, object]) -> None:
    assert (await court.approved(actor, **fields)).status == "refused"


async def test_a_person_who_has_lost_the_role_meanwhile_no_longer_counts(store: Store, tmp_path: Path) -> None:
    lea = LEA.model_copy(update={"roles": ("guest",)})
    court = a_court(store, tmp_path, policy=a_policy(people=(lea, LEO), two_person=(Action.REBOOT,)))
    court.written("cli:lea", status="counted")
    assert (await court.approved("cli:leo")).status == "counted"


async def test_a_removal_decided_in_needs_help_needs_two_persons_as_well(court: Court) -> None:
    first = court.written("cli:lea", "remove")
    second = court.written("cli:leo", "remove")
    ends = [(await court.judge(ident, State.NEEDS_HELP)).status for ident in (first, second)]
    assert ends == ["counted", "accepted"]


async def test_other_actions_need_one_person(court: Court) -> None:
    assert (await court.approved("cli:lea", action="power-cycle")).status == "accepted"
