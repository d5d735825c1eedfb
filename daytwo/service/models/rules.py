"""The catalogue of faults and the rules that hold for them, as people read them: of `reads.plane` and `reads.rules`."""

from __future__ import annotations

from daytwo.domain.policy import EffectiveRule
from daytwo.domain.vocabulary import Action, Clears, FaultClass, Frozen, Mode, Severity


class FaultView(Frozen):
    """One entry of the catalogue of faults."""

    id: str
    title: str
    fault_class: FaultClass
    severity: Severity
    mode: Mode
    clears: Clears
    first_action: Action | None
    new_work_fails: bool
    meaning: str
    source: str
    verify: tuple[str, ...]
    xid: int | None
    family: str
    notes: str


class RuleView(Frozen):
    """What holds for one fault on one cluster, each value with its origin, and who may approve its first action."""

    cluster: str
    policy_revision: int
    rule: EffectiveRule
    approved_by: tuple[str, ...]
    two_persons: bool
    windows: tuple[str, ...]
