"""What a site allows: the policy of one cluster, with the defaults of fleet practice and the reason for each.

Times are seconds and named so. `daytwo policy check` validates a file; `ClusterDefinition` holds one policy per cluster.
"""

from __future__ import annotations

from pydantic import Field

from daytwo.domain.vocabulary import Action, Clears, Frozen, Mode


class FaultRule(Frozen):
    """What this site does about one fault, one class of faults or `default`; an absent field falls through to the next."""

    mode: Mode | None = None
    action: Action | None = None
    ladder: tuple[Action, ...] | None = None
    debounce_seconds: float | None = Field(default=None, ge=0)
    contain: bool | None = None
    verify: tuple[str, ...] | None = None
    clears: Clears | None = None


class Person(Frozen):
    """Somebody who may decide. `identities` are how they come in: `cli:alice` (Unix user), `slack:U0…`, `oidc:…`."""

    name: str
    roles: tuple[str, ...]
    identities: tuple[str, ...] = ()


class Approval(Frozen):
    """Who may approve what. A role named in `roles` allows its actions; `*` allows every action."""

    people: tuple[Person, ...] = ()
    roles: dict[str, tuple[str, ...]] = Field(
        default_factory=lambda: {
            "operator": (
                "run-diagnostic",
                "verify",
                "restart-service",
                "reset-gpu",
                "reboot",
                "power-cycle",
                "tell-owner",
                "inspect",
            ),
            "lead": ("*",),
        }
    )
    root_is_lead: bool = True
    valid_seconds: float = Field(default=24 * 3600, gt=0)
    unverified_may: tuple[Action, ...] = (
        Action.RUN_DIAGNOSTIC,
        Action.VERIFY,
        Action.TELL_OWNER,
        Action.INSPECT,
    )


class Budget(Frozen):
    """How many nodes may be out at once. Counted over nodes that are out for any reason; never less than one."""

    acting_share: float = Field(default=0.02, gt=0, le=1)
    acting_nodes: int = Field(default=10, ge=1)
    acting_per_domain: int = Field(default=1, ge=1)
    containing_share: float = Field(default=0.05, gt=0, le=1)
    containing_nodes: int = Field(default=25, ge=1)


class Breaker(Frozen):
    """When many nodes fall at once it is one cause, not many nodes."""

    nodes: int = Field(default=3, ge=2)
    window_seconds: float = Field(default=300, gt=0)


class Attempts(Frozen):
    """Reboot-class acts per node before a person must look."""

    per_day: int = Field(default=1, ge=0)
    per_week: int = Field(default=2, ge=0)


class Drain(Frozen):
    """How work is taken off a node. Never by force: a timeout asks."""

    timeout_seconds: float = Field(default=1800, gt=0)
    requeue_opt_in: str = "daytwo-requeue"


class Verify(Frozen):
    """How long tests may take, and how long the kernel log must be quiet before a node returns."""

    timeout_seconds: float = Field(default=1800, gt=0)
    quiet_seconds: float = Field(default=600, ge=0)


class Timing(Frozen):
    """The small waits around a proposal and an act."""

    settle_seconds: float = Field(default=1.5, ge=0)
    settle_at_most_seconds: float = Field(default=5, ge=0)
    auto_resolve_seconds: float = Field(default=300, ge=0)
    boot_seconds: float = Field(default=2400, gt=0)
    silent_after_seconds: float = Field(default=180, gt=0)


class Policy(Frozen):
    """The policy of one cluster."""

    faults: dict[str, FaultRule] = Field(default_factory=dict)
    classes: dict[str, FaultRule] = Field(default_factory=dict)
    default: FaultRule = FaultRule()
    contain_unasked: bool = True
    approval: Approval = Approval()
    budget: Budget = Budget()
    breaker: Breaker = Breaker()
    attempts: Attempts = Attempts()
    drain: Drain = Drain()
    verify: Verify = Verify()
    timing: Timing = Timing()
