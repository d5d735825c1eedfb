"""The policy of one cluster, and what holds for a fault under it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from daytwo.domain.ladders import LADDERS, ladder_from
from daytwo.domain.policy.approval import Approval
from daytwo.domain.policy.bounds import Attempts, Breaker, Budget, Flapping, Rivals
from daytwo.domain.policy.rules import EffectiveRule, FaultRule, Origin
from daytwo.domain.policy.steps import Drain, Evidence, Verify
from daytwo.domain.policy.times import Reminders, Retention, Timing
from daytwo.domain.vocabulary import Action, Fault, FaultClass, Frozen
from daytwo.domain.windows import Closed, Window, closed


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
