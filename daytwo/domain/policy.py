"""What a site allows: the policy of one cluster, with the defaults of fleet practice and the reason for each.

Times are seconds and named so. Every field says its default's reason and its source: `operations` is the review by
on-call practice, `design` what the engine needs, `judgement` neither. `python -m daytwo.domain.policy` prints the JSON
schema, and docs/policy.md is made from it. `ClusterDefinition` holds one policy per cluster; the CLI checks a file.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from daytwo.domain.ladders import LADDERS, climbs, ladder_from
from daytwo.domain.vocabulary import Action, Clears, Fault, FaultClass, Frozen, Mode
from daytwo.domain.windows import Closed, Window, closed

A = Action

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]


class Origin(StrEnum):
    """Where a value of an effective rule was written."""

    FAULT_RULE = "fault rule"
    CLASS_RULE = "class rule"
    DEFAULT = "default"
    CATALOGUE = "catalogue"


class EffectiveRule(Frozen):
    """What holds for one fault on this cluster, each value with its origin in `origins`."""

    fault: str
    mode: Mode
    action: Action
    ladder: tuple[Action, ...]
    debounce_seconds: float
    contain: bool
    verify: tuple[str, ...]
    clears: Clears
    origins: dict[str, Origin]

    def says(self, field: str) -> str:
        """Name the rule that a value comes from, as triage lists it: `action of xid-79 by catalogue`."""
        return f"{field} of {self.fault} by {self.origins[field].value}"


class FaultRule(Frozen):
    """What this site does about one fault, one class or all; an absent field falls through to the next rule."""

    mode: Mode | None = Field(
        default=None,
        description="off: as if not seen. record: kept, never asks. recommend: asks a person. auto: approved "
        "by the policy. Absent: the catalogue's, which records what is mostly the application's "
        "or the site's. Source: operations 3.",
    )
    action: Action | None = Field(
        default=None,
        description="What is tried first. Absent: the driver's recovery action where there is one, else the "
        "catalogue's. Source: faults 1, the driver's own verdict goes first.",
    )
    ladder: tuple[Action, ...] | None = Field(
        default=None,
        description="What is tried after that, each taking away more than the one before. Absent: the ladder "
        "of the fault's class, because one ladder for all wipes disks for faults of boards. "
        "Source: operations, rule 3.",
    )
    debounce_seconds: Seconds | None = Field(
        default=None,
        description="How long a fault must fire before anybody is asked. Absent: the catalogue's. Source: "
        "operations, rule 22.",
    )
    contain: bool | None = Field(
        default=None,
        description="Whether new work is kept off unasked. Absent: only for faults on which new work would "
        "fail. Source: operations, rule 1.",
    )
    verify: tuple[str, ...] | None = Field(
        default=None,
        description="Tests beyond the floor that the node passes before it returns. Absent: the catalogue's "
        "for this fault. Source: operations 3.",
    )
    clears: Clears | None = Field(
        default=None,
        description="What ends a finding. Absent: the catalogue's, because an Xid that falls silent is not "
        "cured. Source: operations, rule 8.",
    )

    @model_validator(mode="after")
    def _ladder_climbs(self) -> Self:
        if self.ladder is not None and not climbs(self.ladder):
            raise ValueError("ladder: each action must take away more than the one before, and one is the least")
        return self


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


class Evidence(Frozen):
    """What is collected from a node before an act that would lose it: kernel log, nvidia-smi, last readings."""

    wait_seconds: Seconds = Field(
        default=30,
        le=600,
        description="How long an act waits for the agent to begin, and as long again for it to end. Without an answer "
        "the act goes on and the record says so. 0: nothing is collected. Source: design 4 (salvage), judgement.",
    )
    keep_days: int = Field(
        default=90,
        ge=1,
        le=3650,
        description="How long it is kept. 90 days: returns of boards take weeks. Source: judgement.",
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


class Drain(Frozen):
    """How work is taken off a node. Never by force: a timeout asks."""

    timeout_seconds: Limit = Field(
        default=1800,
        description="How long work may take to leave before a person is asked. 30 min. Source: operations 3.",
    )
    requeue_opt_in: str = Field(
        default="daytwo-requeue",
        min_length=1,
        description="A job whose comment holds this word may be requeued. Slurm's own flag is on by default "
        "and reruns the script from the top. Source: operations, rule 11.",
    )


class Verify(Frozen):
    """How long tests may take, and how long the kernel log must be quiet before a node returns."""

    timeout_seconds: Limit = Field(
        default=1800,
        description="How long the tests may take before a person is asked. 30 min. Source: design 4, judgement.",
    )
    quiet_seconds: Seconds = Field(
        default=600,
        description="How long no new Xid may come after the act. 10 min. Source: operations 3 (verify, always).",
    )
    answer_seconds: Limit = Field(
        default=120,
        description="How long the agent has to take up a question before a person is asked. Two pulses: an agent "
        "that misses both cannot be reached. Source: design 8.",
    )


class Timing(Frozen):
    """The small waits around a proposal and an act."""

    settle_seconds: Seconds = Field(
        default=1.5,
        description="A proposal is announced after this much quiet: one fault prints several Xids within a "
        "second, and Xid 154 follows at +0.4 s. Source: operations 3 (announce).",
    )
    settle_at_most_seconds: Seconds = Field(
        default=5, description="It is announced at the latest after this. Source: operations 3 (announce)."
    )
    auto_resolve_seconds: Seconds = Field(
        default=300,
        description="A proposal ends by itself when its faults, all of which clear by reading, were clear for "
        "this long. 5 min. Source: operations 3 (auto-resolve).",
    )
    boot_seconds: Limit = Field(
        default=2400,
        description="How long a boot may take before a person is asked. 40 min: HGX boots slowly. Source: "
        "operations 3.",
    )
    silent_after_seconds: Limit = Field(
        default=180,
        description="Silence of an agent that makes its node unknown: three missed pulses. Source: operations, rule 9.",
    )
    snooze_seconds: Seconds = Field(
        default=8 * 3600,
        description="How long a dismissed fault does not ask again where whoever dismissed it did not say. 8 h, a "
        "shift: without it the node would be proposed and contained anew at once. Source: operations, rule 7, "
        "judgement.",
    )
    driver_settle_seconds: Seconds = Field(
        default=600,
        description="A fault of a GPU or of software that began this soon before or after the driver was changed waits "
        "for so long, and is then tested and not repaired. 10 min: an upgrade unloads the driver, loads another and "
        "boots. Source: operations, rule 16, judgement.",
    )
    noted_seconds: Seconds = Field(
        default=24 * 3600,
        description="After a person was told (`inspect`, `tell-owner`) and took note, the same fault does not "
        "ask again for this long. 24 h, the reminder of a degraded fault. Source: operations 3 "
        "(unanswered).",
    )


class Reminders(Frozen):
    """When people are told again of what nobody has answered. A repair that is held, or approved, reminds nobody."""

    critical_seconds: Limit = Field(
        default=300, description="A critical proposal, for the first time. 5 min. Source: operations 3 (unanswered)."
    )
    next_group_seconds: Limit = Field(
        default=600,
        description="When the next of `approval.groups` is told as well, counted from the proposal. 10 min: the first "
        "may be asleep. Source: operations 3 (unanswered).",
    )
    critical_again_seconds: Limit = Field(
        default=3600, description="All again, each time after this. 60 min. Source: operations 3 (unanswered)."
    )
    degraded_seconds: Limit = Field(
        default=24 * 3600,
        description="A node that still works. 24 h: once in a working day. Source: operations 3 (unanswered).",
    )
    cosmetic_seconds: Limit = Field(
        default=7 * 24 * 3600, description="What may wait, never urgent. 7 d. Source: operations 3 (unanswered)."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.next_group_seconds <= self.critical_seconds:
            raise ValueError("next_group_seconds: the next group is told later than the first reminder")
        return self


class Retention(Frozen):
    """How long is kept what nobody is asked about any more. Repairs, decisions, acts and the audit stay for ever."""

    observations_days: float = Field(
        default=90,
        ge=31,
        allow_inf_nan=False,
        description="Observations that no open repair, firing finding or running boot needs. 90 d: three times the 28 "
        "days in which incidents of a part are counted. At least 31: an agent may send what is 30 days old. Source: "
        "judgement.",
    )
    requests_days: float = Field(
        default=30,
        ge=1,
        allow_inf_nan=False,
        description="Questions to agents, with their answers. 30 d: what they proved stands in the tests of the "
        "repair. Source: judgement.",
    )


class Policy(Frozen):
    """The policy of one cluster."""

    faults: dict[str, FaultRule] = Field(
        default_factory=dict, description="Rules by fault id (`xid-79`, `gpu-off-bus`); they go before all others."
    )
    classes: dict[FaultClass, FaultRule] = Field(
        default_factory=dict, description="Rules by class of fault (`board`, `link`, …); they go before `default`."
    )
    default: FaultRule = Field(
        default=FaultRule(), description="The rule for every fault; what it leaves out is the catalogue's."
    )
    contain_unasked: bool = Field(
        default=True,
        description="Whether new work may be kept off a node before anybody was asked. A node with a lost GPU "
        "rejects every job that it is given: 554 pods in 1 h 46 min. Nothing running is touched. "
        "Source: operations, rule 1.",
    )
    approval: Approval = Field(default=Approval(), description="Who may approve what.")
    budget: Budget = Field(default=Budget(), description="How many nodes may be out at once.")
    breaker: Breaker = Field(default=Breaker(), description="When many nodes are one cause.")
    attempts: Attempts = Field(default=Attempts(), description="How often the same is tried.")
    evidence: Evidence = Field(default=Evidence(), description="What is kept of a node before an act.")
    flapping: Flapping = Field(
        default=Flapping(), description="When a fault that comes and goes is not cured by going."
    )
    windows: tuple[Window, ...] = Field(
        default=(),
        description="When acts may begin. None: at any time, because a fault does not wait for the night. Source: "
        "design 6.",
    )
    reminders: Reminders = Field(default=Reminders(), description="When people are told again.")
    rivals: Rivals = Field(default=Rivals(), description="When another tool repairs the same nodes.")
    drain: Drain = Field(default=Drain(), description="How work leaves a node.")
    verify: Verify = Field(default=Verify(), description="How a node is tested.")
    timing: Timing = Field(default=Timing(), description="The small waits.")
    retention: Retention = Field(default=Retention(), description="How long is kept what nobody needs.")

    def rule_for(self, fault: Fault) -> EffectiveRule:
        """Return what holds for `fault`: its own rule, else its class's, else the default, else the catalogue."""
        says = {name: self._find(fault, name) or (value, Origin.CATALOGUE) for name, value in _catalogue(fault).items()}
        says["action"] = self._find(fault, "action") or _first_action(fault, *says["ladder"])
        values = {name: value for name, (value, _) in says.items()}
        values["ladder"] = ladder_from(values["ladder"], values["action"])
        return EffectiveRule(fault=fault.id, **values, origins={name: origin for name, (_, origin) in says.items()})

    def closed(self, action: Action, fault_class: FaultClass | None, now: datetime) -> Closed | None:
        """Return the window that an act must wait for, or `None` where it may begin now."""
        return closed(self.windows, action, fault_class, now=now)

    def _find(self, fault: Fault, field: str) -> tuple[Any, Origin] | None:
        rules = (
            (self.faults.get(fault.id), Origin.FAULT_RULE),
            (self.classes.get(fault.fault_class), Origin.CLASS_RULE),
            (self.default, Origin.DEFAULT),
        )
        for rule, origin in rules:
            if rule is not None and (value := getattr(rule, field)) is not None:
                return value, origin
        return None


def _catalogue(fault: Fault) -> dict[str, Any]:
    return {
        "mode": fault.mode,
        "ladder": LADDERS[fault.fault_class],
        "debounce_seconds": fault.debounce_seconds,
        "contain": fault.new_work_fails,
        "verify": fault.verify,
        "clears": fault.clears,
    }


def _first_action(fault: Fault, ladder: tuple[Action, ...], origin: Origin) -> tuple[Action, Origin]:
    """A ladder that the site wrote begins where the site says, unless the catalogue's advice stands on it."""
    if fault.first_action is None or (origin is not Origin.CATALOGUE and fault.first_action not in ladder):
        return ladder[0], origin
    return fault.first_action, Origin.CATALOGUE


def schema() -> dict[str, Any]:
    """The JSON schema of a policy, with the reason and the source of each default."""
    return Policy.model_json_schema()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
