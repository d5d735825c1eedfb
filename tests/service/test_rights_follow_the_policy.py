"""Who may do what: a table."""

from __future__ import annotations

import pytest

from daytwo.domain.vocabulary import Action
from daytwo.service.rights import Allowed, NotAllowed, may, may_administer
from tests.rows import a_policy

OWNER = "cli:daytwo"


@pytest.mark.parametrize(
    ("actor", "action", "allowed"),
    [
        ("cli:alice", Action.REBOOT, True),
        ("slack:U1", Action.REBOOT, True),
        ("cli:alice", Action.REMOVE, False),
        ("cli:alice", Action.REPROVISION, False),
        ("cli:lea", Action.REMOVE, True),
        ("cli:root", Action.REMOVE, True),
        ("cli:mallory", Action.REBOOT, False),
        ("cli:mallory", None, False),
        ("Alice", Action.REBOOT, False),
        ("cli:alice", None, True),
    ],
)
def test_a_role_allows_its_actions(actor: str, action: Action | None, allowed: bool) -> None:
    assert isinstance(may(a_policy(), actor, action), Allowed if allowed else NotAllowed)


def test_the_refusal_says_which_roles_would_do() -> None:
    verdict = may(a_policy(), "cli:alice", Action.REMOVE)
    assert verdict == NotAllowed("Alice has the roles operator; remove needs one of the roles lead; ask Lea")


def test_somebody_without_a_role_is_told_whom_to_ask() -> None:
    verdict = may(a_policy(), "cli:mallory", Action.REBOOT)
    assert isinstance(verdict, NotAllowed)
    assert verdict.why.endswith("of this cluster's policy; ask Alice, Lea")


def test_root_is_nobody_where_the_policy_says_so() -> None:
    assert isinstance(may(a_policy(root_is_lead=False), "cli:root", Action.REBOOT), NotAllowed)


def test_a_role_that_the_policy_does_not_define_allows_nothing() -> None:
    assert isinstance(may(a_policy(roles={}), "cli:lea", None), NotAllowed)


@pytest.mark.parametrize(("action", "allowed"), [(Action.VERIFY, True), (Action.REBOOT, False), (None, True)])
def test_a_claimed_name_is_worth_what_the_policy_gives_any_claim(action: Action | None, allowed: bool) -> None:
    verdict = may(a_policy(), "cli:lea", action, verified=False)
    assert isinstance(verdict, Allowed if allowed else NotAllowed)


@pytest.mark.parametrize(
    ("actor", "allowed"), [("cli:root", True), (OWNER, True), ("cli:lea", True), ("cli:alice", False)]
)
def test_only_root_the_owner_and_leads_administer(actor: str, allowed: bool) -> None:
    assert isinstance(may_administer(a_policy(), actor, owner=OWNER), Allowed if allowed else NotAllowed)


def test_a_lead_of_nothing_cannot_declare_a_first_cluster() -> None:
    assert isinstance(may_administer(None, "cli:lea", owner=OWNER), NotAllowed)
