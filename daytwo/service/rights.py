"""Who may do what: pure, always asked with the policy as it is now.

The workflow's `authorise` asks `may` before anything is done to a node; the service asks `may_administer` before it
changes what daytwo itself is (a definition, a node's credential, a freeze that ends).
"""

from __future__ import annotations

from dataclasses import dataclass

from daytwo.domain.policy import Person, Policy
from daytwo.domain.vocabulary import Action

ROOT = "cli:root"
LEAD = "lead"
EVERY_ACTION = "*"
MOST_NAMED = 5
"""People who are named to somebody who may not."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """`who` is the person's name in the policy; `roles` are those that allow it, empty for an unverified claim."""

    who: str
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """`why` is one sentence that says what is missing and what would be needed."""

    why: str


Verdict = Allowed | NotAllowed


def may(policy: Policy, actor: str, action: Action | None, *, verified: bool = True) -> Verdict:
    """Say whether `actor` (an identity such as `cli:alice`) may have `action` carried out on a node.

    `action` is `None` for what only stops or puts back (dismiss, hold, release): any role is enough. An identity that
    was claimed and not proven (`verified=False`) may do what the policy's `unverified_may` lists, whatever its name.
    """
    if not verified:
        return _unverified(policy, actor, action)
    person = find_person(policy, actor)
    if person is None:
        return NotAllowed(f"{actor} is nobody in approval.people of this cluster's policy{_ask(policy, action)}")
    roles = tuple(role for role in person.roles if _covers(policy, role, action))
    if roles:
        return Allowed(person.name, roles)
    wanted = ", ".join(sorted(role for role in policy.approval.roles if _covers(policy, role, action))) or "none"
    needs = f"{_named(action)} needs one of the roles {wanted}{_ask(policy, action)}"
    return NotAllowed(f"{person.name} has {_listed(person.roles)}; {needs}")


def may_administer(policy: Policy | None, actor: str, *, owner: str) -> Verdict:
    """Say whether `actor` may change definitions, credentials and freezes: the service's own user, root, or a lead.

    `policy` is `None` for a cluster that is not declared yet: then only the first two.
    """
    if actor in (owner, ROOT):
        return Allowed(actor.partition(":")[2], (LEAD,))
    person = find_person(policy, actor) if policy else None
    if policy and person and any(EVERY_ACTION in policy.approval.roles.get(role, ()) for role in person.roles):
        return Allowed(person.name, person.roles)
    return NotAllowed(f"{actor} may not do this; it needs root, the user that runs the service ({owner}), or a lead")


def find_person(policy: Policy, actor: str) -> Person | None:
    """The person behind an identity, or `None`. Root counts as a lead where `root_is_lead` says so."""
    for person in policy.approval.people:
        if actor in person.identities:
            return person
    if actor == ROOT and policy.approval.root_is_lead:
        return Person(name="root", roles=(LEAD,), identities=(ROOT,))
    return None


def _ask(policy: Policy, action: Action | None) -> str:
    """Who may, for somebody who may not."""
    people = policy.approval.people
    names = [each.name for each in people if any(_covers(policy, role, action) for role in each.roles)]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"; ask {', '.join(names[:MOST_NAMED])}{more}" if names else ""


def _covers(policy: Policy, role: str, action: Action | None) -> bool:
    allowed = policy.approval.roles.get(role)
    if allowed is None:
        return False
    return action is None or EVERY_ACTION in allowed or action.value in allowed


def _unverified(policy: Policy, actor: str, action: Action | None) -> Verdict:
    if action is None or action in policy.approval.unverified_may:
        return Allowed(f"{actor} (claimed)")
    allowed = ", ".join(policy.approval.unverified_may) or "nothing"
    return NotAllowed(
        f"{actor} is a claimed identity that nothing proves; it may approve {allowed}, not {action.value}. Use the CLI"
    )


def _listed(roles: tuple[str, ...]) -> str:
    return f"the roles {', '.join(roles)}" if roles else "no role"


def _named(action: Action | None) -> str:
    return action.value if action else "this"
