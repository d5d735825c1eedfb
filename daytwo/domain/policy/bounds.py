"""How much may happen at once, and how often: to a pool, to a domain, to a node."""

from __future__ import annotations

from pydantic import Field

from daytwo.domain.policy.units import Limit, Seconds, Share
from daytwo.domain.vocabulary import Frozen


class Budget(Frozen):
    """How many nodes may be out at once. Counted over nodes that are out for any reason; never less than one."""

    acting_share: Share = Field(
        default=0.02, description="Part of a pool that may be drained or acted on at once. 2 %. Source: operations 3."
    )
    acting_nodes: int = Field(
        default=10, ge=1, description="The same as a number; the smaller holds. Source: operations 3."
    )
    acting_per_domain: int = Field(
        default=1,
        ge=1,
        description="Nodes acted on at once that share a rack or an NVLink domain: they share a fate. Source: "
        "operations 3.",
    )
    containing_share: Share = Field(
        default=0.05,
        description="Part of a pool that may be contained unasked. 5 %: a false alarm must not close a pool. "
        "Source: operations 3.",
    )
    containing_nodes: int = Field(
        default=25,
        ge=1,
        description="The same as a number; the smaller holds. Source: operations 3 (HyperPod's batch).",
    )
    interruptions_per_hour: int = Field(
        default=3,
        ge=1,
        description="Running jobs of a cluster that may be requeued within an hour. 3. Source: operations 3.",
    )
    interruption_apart_seconds: Seconds = Field(
        default=86400,
        description="How long after an interruption the same job is not interrupted again: 24 h, for a job that is hit "
        "by each faulty node in turn never gets anywhere. Source: operations 3.",
    )


class Breaker(Frozen):
    """When many nodes fall at once it is one cause, not many nodes: nothing is proposed for any of them alone."""

    nodes: int = Field(
        default=3, ge=2, description="Nodes of one domain with one class of fault. 3. Source: operations, rule 6."
    )
    window_seconds: Limit = Field(
        default=300, description="Within this time they must have begun to fire. 5 min. Source: operations, rule 6."
    )
    hold_seconds: Seconds = Field(
        default=3600,
        description="How long after the last of them the nodes are not asked about one by one. 1 h for "
        "whoever looks at the cause; then each is judged as it is. Source: operations, rule 6, judgement.",
    )
    pool_nodes: int = Field(
        default=5,
        ge=2,
        description="Nodes of one pool with one class of fault: more than this, and more than `pool_share`. "
        "Source: operations 3.",
    )
    pool_share: Share = Field(
        default=0.05,
        description="Part of the pool: more than this, and more than `pool_nodes`. 5 %. Source: operations 3.",
    )


class Attempts(Frozen):
    """Acts that boot a node before a person must look."""

    per_day: int = Field(
        default=1, ge=0, description="Boots by us in 24 h. 1: a second cures nothing more. Source: operations 3."
    )
    per_week: int = Field(default=2, ge=0, description="Boots by us in 7 days. Source: operations 3 (gpud: 2).")
    relapse_seconds: Seconds = Field(
        default=24 * 3600,
        description="A fault that returns this soon after its repair starts at the next rung. Source: "
        "operations 3, rule 7.",
    )
    incidents: int = Field(
        default=3,
        ge=2,
        description="The incident of one class of fault on one part (a GPU by its UUID), counted with the present one, "
        "at which the removal of the node is proposed instead of another repair. 3. Source: operations 3 (gpud: 2).",
    )
    incidents_seconds: Seconds = Field(
        default=28 * 24 * 3600,
        le=28 * 24 * 3600,
        description="Within which time they count. 28 days, and not more: older repairs are not looked at. Source: "
        "operations 3.",
    )


class Flapping(Frozen):
    """When a fault that comes and goes is taken for firing until it is calm, and not for cured each time."""

    turns: int = Field(
        default=3,
        ge=2,
        description="How often its reading ended within `window_seconds`. 3. Source: operations, rule 8.",
    )
    window_seconds: Limit = Field(default=24 * 3600, description="24 h. Source: operations, rule 8.")


class Rivals(Frozen):
    """When another tool is taken for a rival healer: it acts on a node again and again while a repair is open."""

    acts: int = Field(
        default=2,
        ge=1,
        description="So many acts of others on one node, each a drain, a resume, a boot or our marks taken off. 2: "
        "once is a person who knows why, twice is a pattern. Source: operations, rules 18 and 20, judgement.",
    )
    window_seconds: Limit = Field(
        default=24 * 3600,
        description="Within this time, and a rival is over when it was quiet for so long. 24 h: health checks act each "
        "few minutes, nightly scripts once a day. Source: judgement.",
    )
