"""Who may approve what."""

from __future__ import annotations

from pydantic import Field

from daytwo.domain.policy.units import Limit
from daytwo.domain.vocabulary import Action, Frozen

A = Action


class Person(Frozen):
    """Somebody who may decide."""

    name: str = Field(description="How the person is named in messages and in the audit.", min_length=1)
    roles: tuple[str, ...] = Field(description="Roles of `approval.roles` that this person has.", min_length=1)
    identities: tuple[str, ...] = Field(
        default=(),
        description="How they come in: `cli:alice` (Unix user), `slack:U0…`, `oidc:…`. None: they cannot "
        "decide. Source: design 5, identity is proven by the channel.",
    )


def _roles() -> dict[str, tuple[str, ...]]:
    everyday = (A.RUN_DIAGNOSTIC, A.VERIFY, A.RESTART_SERVICE, A.RESET_GPU, A.REBOOT, A.POWER_CYCLE)
    return {"operator": tuple(a.value for a in (*everyday, A.TELL_OWNER, A.INSPECT)), "lead": ("*",)}


class Approval(Frozen):
    """Who may approve what, and for how long an approval holds."""

    people: tuple[Person, ...] = Field(
        default=(), description="Who may decide. Empty: only root of the machine that serves, if `root_is_lead`."
    )
    roles: dict[str, tuple[str, ...]] = Field(
        default_factory=_roles,
        description="The actions that each role may approve; `*` is every action. Operators may do what a "
        "node survives; what wipes, replaces or removes a node is a lead's. Source: operations 3 "
        "(never automatic), judgement.",
    )
    root_is_lead: bool = Field(
        default=True,
        description="Root of the machine that serves counts as lead: it could do everything anyway. Source: judgement.",
    )
    two_person: tuple[Action, ...] = Field(
        default=(),
        description="Actions that need a second person, who is not the first. None by default: a small site "
        "has one person at night. Source: design 5.",
    )
    groups: tuple[str, ...] = Field(
        default=("operator", "lead"),
        description="Who is told, in this order: the first group at once, the next when a critical proposal stays "
        "unanswered. Source: operations 3 (unanswered).",
    )
    beyond_workers: tuple[str, ...] = Field(
        default=("lead",),
        description="The roles whose approval counts on login, controller and storage nodes, which many depend on. "
        "Source: operations, rule 19.",
    )
    valid_seconds: Limit = Field(
        default=24 * 3600,
        description="How long an approval waits for its moment before it is asked again. 24 h: jobs and "
        "faults change over a day. Source: operations 3 (unanswered).",
    )
    unverified_may: tuple[Action, ...] = Field(
        default=(A.RUN_DIAGNOSTIC, A.VERIFY, A.TELL_OWNER, A.INSPECT),
        description="What may be approved by somebody whose identity is only claimed (the Temporal UI). "
        "Nothing that clears data or interrupts work. Source: design 5.",
    )
    never_automatic: tuple[Action, ...] = Field(
        default=(A.REPROVISION, A.FAILOVER, A.REMOVE),
        description="Actions that always ask, whatever `mode` says: they cannot be taken back. Source: operations 3.",
    )
