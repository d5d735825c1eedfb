"""What a site does about a fault, a class of faults or all, and what that comes to for one fault."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from daytwo.domain.ladders import climbs
from daytwo.domain.policy.units import Seconds
from daytwo.domain.vocabulary import Action, Clears, Frozen, Mode


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
